// Feeds bytes to the link, takes what it sends, and is the memory behind its port.
//
// Reads 16-bit items from standard input: a byte, bit 8: without a stop bit, bit 9: then wait until
// the link is quiet. Writes 32-bit words to standard output: the number of bytes sent and the
// bytes, the number of writes and each address and value. Both sides stall at random. Ends with 3
// if the link does not become quiet. An address holds its own number until it is written.

#include <cstdint>
#include <cstdio>
#include <unordered_map>
#include <vector>

#include "Vlink.h"
#include "verilated.h"

#define PORT(name) port___05F##name

static VerilatedContext context;
static Vlink top(&context);
static std::vector<uint32_t> sent, written;
static std::unordered_map<uint32_t, uint32_t> memory;
static uint32_t state = 1;
static int answer_in = -1;
static uint32_t answer;

static uint32_t random_bits(int bits) {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return state >> (32 - bits);
}

// One clock. `quiet` counts cycles without any activity.
static void cycle(unsigned& quiet) {
    top.PORT(ready) = answer_in < 0 && random_bits(2) != 0;
    top.PORT(r_valid) = answer_in == 0;
    top.PORT(r_data) = answer_in == 0 ? answer : random_bits(32);
    top.o___05Fready = random_bits(2) != 0;
    top.clk = 0;
    top.eval();
    if (answer_in >= 0) --answer_in;
    if (top.PORT(valid) && top.PORT(ready)) {
        const uint32_t addr = top.PORT(addr);
        if (top.PORT(write)) {
            memory[addr] = top.PORT(w_data);
            written.push_back(addr), written.push_back(top.PORT(w_data));
        } else {
            answer = memory.count(addr) ? memory[addr] : addr;
            answer_in = random_bits(2);
        }
    }
    if (top.o___05Fvalid && top.o___05Fready) sent.push_back(top.o___05Fpayload);
    quiet = top.PORT(valid) || top.o___05Fvalid || answer_in >= 0 ? 0 : quiet + 1;
    top.clk = 1;
    top.eval();
}

static void give(const std::vector<uint32_t>& words, size_t per) {
    const uint32_t count = words.size() / per;
    fwrite(&count, 4, 1, stdout);
    fwrite(words.data(), 4, words.size(), stdout);
}

int main() {
    unsigned quiet = 0, bytes = 0;
    top.idle = 1;
    top.rst = 1;
    cycle(quiet);
    cycle(quiet);
    top.rst = 0;
    uint16_t item;
    while (fread(&item, sizeof item, 1, stdin) == 1) {
        while (random_bits(1)) cycle(quiet);
        top.i___05Fvalid = 1;
        top.i___05Fpayload = item & 0x1FF;
        cycle(quiet);
        top.i___05Fvalid = 0;
        if (++bytes, !(item & 0x200)) continue;
        // The CRC of a frame, which is no longer than this, takes 8 cycles per byte.
        const unsigned enough = 64 + 8 * (bytes < 250 ? bytes : 250);
        bytes = 0;
        int patience = 100000;
        for (quiet = 0; quiet < enough;) {
            cycle(quiet);
            if (!--patience) return 3;
        }
    }
    give(sent, 1);
    give(written, 2);
    top.final();
    return 0;
}
