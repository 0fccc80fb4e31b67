// Drives the accelerator's port at the simulator's full speed.
//
// Reads commands from standard input and answers on standard output, both in little-endian words:
//   0 addr data   write                     no answer
//   1 addr n      read n addresses          n words
//   2 hi lo       run until idle            cycles (2 words), 1 if idle before hi:lo cycles else 0
// Ends with its input. Waves go to the file named by the first argument, if there is one.

#include <cstdint>
#include <cstdio>
#include <vector>

#include "Vaccelerator.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

// Verilator spells a double underscore so.
#define PORT(name) port___05F##name

static VerilatedContext context;
static Vaccelerator top(&context);
#if VM_TRACE
static VerilatedVcdC waves;
#endif

static void cycle() {
    top.clk = 0;
    top.eval();
#if VM_TRACE
    if (waves.isOpen()) waves.dump(context.time());
#endif
    context.timeInc(1);
    top.clk = 1;
    top.eval();
#if VM_TRACE
    if (waves.isOpen()) waves.dump(context.time());
#endif
    context.timeInc(1);
}

static void request(uint32_t addr, bool write, uint32_t data) {
    top.PORT(addr) = addr;
    top.PORT(write) = write;
    top.PORT(w_data) = data;
    top.PORT(valid) = 1;
    top.clk = 0;
    top.eval();
    while (!top.PORT(ready)) cycle(), top.clk = 0, top.eval();
    cycle();
    top.PORT(valid) = 0;
}

static uint32_t answer() {
    while (!top.PORT(r_valid)) cycle();
    uint32_t data = top.PORT(r_data);
    cycle();
    return data;
}

static bool take(uint32_t* words, size_t count) {
    return fread(words, sizeof(uint32_t), count, stdin) == count;
}

static void give(const std::vector<uint32_t>& words) {
    fwrite(words.data(), sizeof(uint32_t), words.size(), stdout);
    fflush(stdout);
}

int main(int argc, char** argv) {
#if VM_TRACE
    if (argc > 1) {
        context.traceEverOn(true);
        top.trace(&waves, 99);
        waves.open(argv[1]);
    }
#else
    (void)argc, (void)argv;
#endif
    top.PORT(valid) = 0;
    top.rst = 1;
    cycle();
    cycle();
    top.rst = 0;
    cycle();
    uint32_t command[3];
    while (take(command, 3)) {
        if (command[0] == 0) {
            request(command[1], true, command[2]);
        } else if (command[0] == 1) {
            std::vector<uint32_t> words;
            for (uint32_t i = 0; i < command[2]; ++i) {
                request(command[1] + i, false, 0);
                words.push_back(answer());
            }
            give(words);
        } else {
            uint64_t limit = uint64_t(command[1]) << 32 | command[2], count = 0;
            while (top.busy && count < limit) cycle(), ++count;
            give({uint32_t(count), uint32_t(count >> 32), uint32_t(!top.busy)});
        }
    }
#if VM_TRACE
    if (waves.isOpen()) waves.close();
#endif
    top.final();
    return 0;
}
