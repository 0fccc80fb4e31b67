// Drives the accelerator's port at the simulator's full speed.
//
// Reads commands from standard input and answers on standard output, both in little-endian words:
//   0 addr data   write                     no answer
//   1 addr n      read n addresses          n words
//   2 hi lo       run until idle            cycles (2 words), 1 if idle before hi:lo cycles else 0
//   3 0 0         fill the external memory  1
//   4 0 0         reset                     1
// Ends at the end of its input, or when the model of the external memory ends the simulation, or
// when the port does not answer. The reason goes to standard error. +waves=F names a file for waves.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
#include <vector>

#include "Vaccelerator.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_fst_c.h"
#endif

// Verilator's spelling of a double underscore.
#define PORT(name) port___05F##name

static VerilatedContext context;
static Vaccelerator top(&context);
static FILE* answers;
#if VM_TRACE
static VerilatedFstC waves;
#endif

// Only a core with external memory has this input.
template <class T> static auto reload(T& core, bool value, int) -> decltype(void(core.reload)) {
    core.reload = value;
}
template <class T> static void reload(T&, bool, long) {}

// Only a core with planted faults has this input; LBQ_MUTANT chooses one of them.
template <class T> static auto mutate(T& core, int) -> decltype(void(core.mutant)) {
    const char* number = getenv("LBQ_MUTANT");
    core.mutant = number ? atoi(number) : 0;
}
template <class T> static void mutate(T&, long) {}

static void cycle() {
    if (context.gotFinish()) exit(1);
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

static void reset() {
    top.PORT(valid) = 0;
    top.rst = 1;
    cycle();
    cycle();
    top.rst = 0;
    cycle();
    // Wait for the calibration of an external memory.
    for (int i = 0; top.busy && i < 1000000; ++i) cycle();
}

// Cycles that the port may take to accept a request or to answer it.
static const int PATIENCE = 1000000;

static void wait_for(const CData& signal, const char* what) {
    for (int i = 0; i < PATIENCE; ++i) {
        if (signal) return;
        cycle();
        top.clk = 0;
        top.eval();
    }
    fprintf(stderr, "the core's port does not %s\n", what);
    exit(1);
}

static void request(uint32_t addr, bool write, uint32_t data) {
    top.PORT(addr) = addr;
    top.PORT(write) = write;
    top.PORT(w_data) = data;
    top.PORT(valid) = 1;
    top.clk = 0;
    top.eval();
    wait_for(top.PORT(ready), "accept a request");
    cycle();
    top.PORT(valid) = 0;
}

static uint32_t answer() {
    wait_for(top.PORT(r_valid), "answer a read");
    uint32_t data = top.PORT(r_data);
    cycle();
    return data;
}

static bool take(uint32_t* words, size_t count) {
    return fread(words, sizeof(uint32_t), count, stdin) == count;
}

static void give(const std::vector<uint32_t>& words) {
    fwrite(words.data(), sizeof(uint32_t), words.size(), answers);
    fflush(answers);
}

int main(int argc, char** argv) {
    answers = fdopen(dup(1), "wb");
    dup2(2, 1);
    context.commandArgs(argc, argv);
#if VM_TRACE
    const std::string file = context.commandArgsPlusMatch("waves=");
    if (!file.empty()) {
        context.traceEverOn(true);
        top.trace(&waves, 99);
        waves.open(file.c_str() + sizeof("+waves=") - 1);
    }
#endif
    mutate(top, 0);
    reset();
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
        } else if (command[0] == 3) {
            reload(top, true, 0);
            cycle();
            reload(top, false, 0);
            give({1});
        } else if (command[0] == 4) {
            reset();
            give({1});
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
