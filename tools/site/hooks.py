"""Additions to mkdocs: pages from outside of docs/, API pages, links to sources.

README.md becomes the first page. The API pages list the names that `lbq_hw` and `lbq_hw.train`
export, with their docstrings; `Docstrings` renders what reStructuredText they have. The site has no
source files, so a link to one is replaced by its text. The target of every link must exist.
"""

from __future__ import annotations

import ast
import logging
import re
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
STYLE = Path(__file__).with_name("site.css")
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
}
API = {"lbq_hw": "Deployment", "train": "Training"}
_LOG = logging.getLogger("mkdocs.hooks")
_ROLE = re.compile(r":\w+:`~?([^`]+)`")
_RULE = re.compile(r" *=+(?: +=+)+ *")
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


class Docstrings(Extension):
    """Renders the roles and the simple tables of reStructuredText that docstrings have."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.preprocessors.register(_Rewrite(md), "docstrings", 25)


class _Rewrite(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        made, inside = [], False
        for line in lines:
            text = _ROLE.sub(r"`\1`", line)
            if _RULE.fullmatch(line):
                made += [""] if inside else ["| name | meaning |", "| --- | --- |"]
                inside = not inside
            elif inside:
                made.append(f"| {re.sub(r'  +', ' | ', text.strip())} |")
            else:
                made.append(text)
        return made


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    extensions: list[Any] = config.markdown_extensions
    extensions.append(Docstrings())
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are not files of docs/."""
    made = {"site.css": STYLE.read_text("utf-8")}
    for name, page in OUTSIDE.items():
        text = (ROOT / name).read_text("utf-8")
        made[page] = re.sub(r"\]\(docs/", "](", text)
    for package, title in API.items():
        made[f"api/{package}.md"] = api(package, title)
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def api(package: str, title: str) -> str:
    """The page of a package: each name that it exports, from the module that defines it."""
    tree = ast.parse((ROOT / package / "__init__.py").read_text("utf-8"))
    (homes,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES"
    )
    whole = package if package == "lbq_hw" else f"lbq_hw.{package}"
    names = "".join(f"::: {whole}.{home}.{name}\n\n" for name, home in sorted(homes.items()))
    return f"# {title}\n\n`from {whole} import NAME`\n\n{names}"


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Point links to pages of the site, and remove links whose target the site does not have."""
    inside = page.file.src_uri not in OUTSIDE.values()
    folder = ROOT / "docs" / Path(page.file.src_uri).parent if inside else ROOT

    def led(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        if re.match(r"[a-z]+:", target) or not target:
            return found[0]
        path = (folder / target).resolve() if inside else (ROOT / "docs" / target).resolve()
        if path.is_relative_to(ROOT / "docs") and path.is_file():
            return found[0]
        outer = path if inside else (ROOT / target).resolve()
        if (name := outer.relative_to(ROOT).as_posix()) in OUTSIDE:
            up = "../" * page.file.src_uri.count("/")
            return f"[{text}]({up}{OUTSIDE[name]}{anchor})"
        if not outer.exists():
            _LOG.warning("%s links to %s, which does not exist", page.file.src_uri, target)
        return text

    return _LINK.sub(led, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Keep a number and its unit on one line of a table."""
    return re.sub(r"(<td[^>]*>[\d.,]+) ([\w%]+)(?=</td>)", r"\1&nbsp;\2", html)
