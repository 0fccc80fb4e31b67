// Reads words of an external memory at simulated pins: bench ADDRESS WORDS BITS and the
// model's arguments, with the BITS of an address.
// Prints "ready CYCLE CAPTURE", "asked CYCLE", "done CYCLE HASH".

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "Vmemory.h"
#include "verilated.h"

#define PORT(stream, name) port___05F##stream##___05F##name

static VerilatedContext context;
static uint64_t cycles;

int main(int argc, char** argv) {
    context.commandArgs(argc, argv);
    Vmemory top(&context);
    const uint64_t address = strtoull(argv[1], nullptr, 0), words = strtoull(argv[2], nullptr, 0);
    const int bits = atoi(argv[3]);
    uint64_t hash = 14695981039346656037u, seen = 0;
    bool asked = false, ready = false;
    top.rst = 1;
    top.clk = 0;
    top.eval();
    while (!context.gotFinish() && !top.failed && seen < words) {
        top.rst = cycles < 4;
        if (top.ready && !ready) {
            ready = true;
            printf("ready %llu %d\n", (unsigned long long)cycles, int(top.capture));
        }
        top.PORT(words, ready) = 1;
        top.PORT(read, valid) = ready && !asked;
        top.PORT(read, payload) = (words - 1) << bits | address;
        top.eval();
        const bool taken = top.PORT(read, valid) && top.PORT(read, ready);
        const bool came = top.PORT(words, valid) && ready;
        const uint64_t word = top.PORT(words, payload);
        if (taken) {
            asked = true;
            printf("asked %llu\n", (unsigned long long)cycles);
        }
        if (came) ++seen, hash = (hash ^ word) * 1099511628211u;
        top.clk = 1;
        top.eval();
        top.clk = 0;
        top.eval();
        ++cycles;
    }
    printf("done %llu %016llx\n", (unsigned long long)cycles, (unsigned long long)hash);
    top.final();
    return top.violated || top.failed || seen < words;
}
