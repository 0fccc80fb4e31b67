"""`States` against Amaranth's own FSM."""

import random

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from core.harness import Bench

from lbq_hw.core.fabric.states import States


class Both(wiring.Component):
    """One machine of three states, twice: by its bits and by a number."""

    choice: In(2)
    bits: Out(3)
    number: Out(3)

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        states = States(m, None, "B")
        with states.state("A"):
            m.d.comb += self.bits[0].eq(1)
            with m.If(self.choice == 1):
                states.go("B")
            with m.Elif(self.choice == 2):
                states.go("C")
        with states.state("B"):
            m.d.comb += self.bits[1].eq(1)
            with m.If(self.choice == 3):
                states.go("C")
            with m.Elif(self.choice == 2):
                states.go("B")
        with states.state("C"):
            m.d.comb += self.bits[2].eq(1)
            states.go("A")
        with m.FSM(init="B"):
            with m.State("A"):
                m.d.comb += self.number[0].eq(1)
                with m.If(self.choice == 1):
                    m.next = "B"
                with m.Elif(self.choice == 2):
                    m.next = "C"
            with m.State("B"):
                m.d.comb += self.number[1].eq(1)
                with m.If(self.choice == 3):
                    m.next = "C"
            with m.State("C"):
                m.d.comb += self.number[2].eq(1)
                m.next = "A"
        return m


def test_a_machine_of_bits_is_always_in_the_state_of_one_with_a_number() -> None:
    block = Both()
    bench = Bench(block)
    source = random.Random(1)
    bench.script({"choice": block.choice}, [{"choice": source.randrange(4)} for _ in range(200)])
    seen = bench.probe(bits=block.bits, number=block.number)
    bench.run()
    assert seen["bits"] == seen["number"]
    assert seen["bits"][0] == 0b010
    assert set(seen["bits"]) == {0b001, 0b010, 0b100}
