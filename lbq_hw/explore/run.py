"""Runs an exploration: estimates board by board, then place and route of the front."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lbq_hw import boards, engine, file, zoo
from lbq_hw.commands.progress import image_bar
from lbq_hw.datasets import Reading
from lbq_hw.explore import place as placing
from lbq_hw.explore.candidates import Wish, boards_by_device, explore
from lbq_hw.explore.front import of_all
from lbq_hw.explore.points import Placed, Point, best
from lbq_hw.explore.results import facts
from lbq_hw.flow.job import Job, Options
from lbq_hw.sizing import Weights
from lbq_hw.store import Store, key_of

PARTS = (
    "boards", "chips", "compiler", "config.py", "core", "cycles", "explore", "families", "flow",
    "host", "isa", "network", "resources", "sizing", "tools",
)  # fmt: skip
"""Parts of the project that a result depends on."""
STORE, BUILDS = "results.jsonl", "builds"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The request of a user. Empty fields are chosen by the exploration."""

    models: tuple[str, ...]
    boards: tuple[str, ...]
    lanes: tuple[int, ...] = ()
    words: tuple[int, ...] = ()
    units: tuple[int, ...] = ()
    bits: tuple[int, ...] = ()
    clocks: tuple[float, ...] = ()
    memory: Weights | None = None
    doors: bool = True
    dataset: str | None = None
    data: str | None = None
    layout: Any = None
    background: Any = None
    workers: int = 1
    scheduler: str | None = None

    def options(self, model: str) -> Options:
        """Those of a build; ValueError for lanes, bits or a clock that no build takes."""
        made: dict[str, Any] = {
            "model": zoo.find(model).resolve(),
            "dataset": self.dataset,
            "data": self.data,
            "reading": Reading(layout=self.layout, background=self.background),
        }
        tried = {"lanes": self.lanes, "weight_bits": self.bits, "freq": self.clocks}
        for name, values in tried.items():
            for value in values:
                Options(**made | {name: value})
        return Options(**made)


@dataclass(frozen=True, kw_only=True)
class _Estimated:
    """A network on some boards of one device; `key` names all that its points depend on."""

    wish: Wish
    names: tuple[str, ...]
    key: str


def _estimate(job: _Estimated) -> tuple[_Estimated, list[Point]]:
    return job, [p for name in job.names for p in explore(job.wish, boards.find(name))]


def _synthesise(job: placing.Build) -> tuple[placing.Build, Placed | None]:
    return job, placing.synthesise(job)


def _place(job: placing.Build) -> tuple[placing.Build, Placed]:
    return job, placing.place(job)


class Exploration:
    """One exploration in its folder."""

    def __init__(self, asked: Asked, folder: Path) -> None:
        self.asked, self._folder = asked, folder
        self._options = {model: asked.options(model) for model in asked.models}
        self._jobs = {model: self._job(options) for model, options in self._options.items()}
        self._by_name = {job.network.name: model for model, job in self._jobs.items()}
        if len(self._by_name) < len(asked.models):
            raise ValueError("two models have the same name: explore them one by one")
        self._store = Store(folder / STORE)
        self._points: dict[str, list[Point]] = {}
        self._placed: dict[str, list[Placed]] = {}

    @staticmethod
    def _job(options: Options) -> Job:
        job = Job(options, boards.find("sim"), Path())
        job.network = file.load(options.model)
        return job

    def run(self, *, place: str | None, seeds: int) -> None:
        """Estimate, and `place` the "front" over all boards, or that of each of the "boards"."""
        self._estimate()
        if place is not None:
            chosen = [
                point
                for points in self._points.values()
                for point in (of_all(points) if place == "front" else points)
            ]
            self._place(chosen, range(1, seeds + 1))

    def _estimate(self) -> None:
        wishes, jobs = {}, []
        for model, job in self._jobs.items():
            a = self.asked
            wishes[model] = wish = Wish(
                network=job.network, busy=job.activity, lanes=a.lanes, words=a.words,
                units=a.units, bits=a.bits, memory=a.memory, doors=a.doors,
                clocks_hz=tuple(round(1e6 * mhz) for mhz in a.clocks),
            )  # fmt: skip
            chosen = {name: value for name, value in vars(wish).items() if name != "network"}
            said = chosen | {"busy": asdict(wish.busy)}
            for names in boards_by_device(self.asked.boards):
                key = key_of(engine.sources(PARTS), file.digest(job.network), said, names)
                jobs.append(_Estimated(wish=wish, names=tuple(names), key=key))
        waiting = [job for job in jobs if job.key not in self._store]
        for done, points in self._each("estimates, by FPGA", _estimate, waiting, len(jobs)):
            self._store.add(done.key, [asdict(point) for point in points])
        for model, wish in wishes.items():
            mine = [job for job in jobs if job.wish is wish]
            found = [Point(**line) for job in mine for line in self._store[job.key]]
            self._points[model] = found

    def _place(self, points: Sequence[Point], seeds: Sequence[int]) -> None:
        def build(point: Point, seed: int | None) -> placing.Build:
            options = self._options[self._by_name[point.model]]
            return placing.Build(
                point=point, options=options, root=self._folder / BUILDS, seed=seed
            )

        keys = {
            (point.id, seed): key_of(engine.sources(PARTS), point.id, seed, self.asked.data)
            for point in points
            for seed in seeds
        }
        missing = [
            (point, seed)
            for point in points
            for seed in seeds
            if keys[point.id, seed] not in self._store
        ]
        names = {point.id: point for point, _ in missing}
        before = [build(point, None) for point in names.values()]
        failed: dict[str, Placed] = {}
        for done, error in self._each("synthesis", _synthesise, before, len(before)):
            if error is not None:
                failed[done.point.id] = error
        after = [build(point, seed) for point, seed in missing if point.id not in failed]
        for done, found in self._each("place and route", _place, after, len(keys)):
            assert done.seed is not None
            self._store.add(keys[done.point.id, done.seed], asdict(found))
        for (name, _), key in keys.items():
            found = Placed(**self._store[key]) if key in self._store else failed[name]
            self._placed.setdefault(name, []).append(found)

    def _each(
        self, what: str, work: Callable[[Any], Any], jobs: Sequence[Any], total: int
    ) -> Iterator[Any]:
        """Results of jobs as they finish, with a progress bar; stored results count as finished."""
        with image_bar() as bar:
            task = bar.add_task(what, total=total, completed=total - len(jobs))
            asked = self.asked
            for result in engine.results(
                work, jobs, parts=PARTS, workers=asked.workers, scheduler=asked.scheduler
            ):
                bar.advance(task)
                yield result

    @property
    def refused(self) -> dict[str, list[str]]:
        """Boards that no core fits, by the name of the network."""
        found = {}
        for model, points in self._points.items():
            have = {point.board for point in points}
            fabrics = [n for n in self.asked.boards if boards.find(n).family is not None]
            name = self._jobs[model].network.name
            found[name] = [board for board in fabrics if board not in have]
        return found

    def facts(self) -> list[dict[str, Any]]:
        """One object per network, for JSON, the table and the page."""
        return [
            facts(
                job.network,
                self._points[model],
                self._placed,
                accuracy=_accuracy(job),
                remark=job.activity.remark,
            )
            for model, job in self._jobs.items()
        ]

    def rows(self) -> list[dict[str, Any]]:
        """The best seed of each placed point, as `lbq_hw.resources` keeps measured builds."""
        found = (best(seeds) for seeds in self._placed.values())
        return [one.row for one in found if one is not None and one.row is not None]


def _accuracy(job: Job) -> float | None:
    """Accuracy in percent, if it is known for exactly this network."""
    found = job.evaluation
    if found is None or found["digest"] != file.digest(job.network):
        return None
    return found["accuracy"]
