// Reads a tape from an external memory at simulated pins: bench WORDS and the model's arguments.
// Prints "ready CYCLE CAPTURE", "start CYCLE", "done CYCLE HASH", the last one in the cycle of the last
// word.

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "Vmemory.h"
#include "verilated.h"

#define TAPE(name) tape___05F##name

static VerilatedContext context;
static uint64_t cycles;

int main(int argc, char** argv) {
    context.commandArgs(argc, argv);
    Vmemory top(&context);
    const uint64_t words = strtoull(argv[1], nullptr, 0);
    uint64_t hash = 14695981039346656037u, seen = 0, last = 0;
    bool started = false, ready = false;
    top.rst = 1;
    top.clk = 0;
    top.eval();
    while (!context.gotFinish() && !top.host___05Ffailed && seen < words) {
        top.rst = cycles < 4;
        if (top.TAPE(calibrated) && !ready) {
            ready = true;
            printf("ready %llu %d\n", (unsigned long long)cycles, int(top.capture));
        }
        const bool start = ready && !started && top.TAPE(aligned);
        top.TAPE(start) = start;
        top.TAPE(stop) = !start && !started;
        top.TAPE(words___05Fready) = started;
        top.eval();
        if (started && top.TAPE(words___05Fvalid)) {
            ++seen, last = cycles;
            hash = (hash ^ uint64_t(top.TAPE(words___05Fpayload))) * 1099511628211u;
        }
        if (start) {
            started = true;
            printf("start %llu\n", (unsigned long long)cycles);
        }
        top.clk = 1;
        top.eval();
        top.clk = 0;
        top.eval();
        ++cycles;
    }
    printf("done %llu %016llx\n", (unsigned long long)last, (unsigned long long)hash);
    top.final();
    return top.violated || top.host___05Ffailed || seen < words;
}
