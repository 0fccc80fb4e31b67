// A Verilated lbq_core for C programs: its bus, its streams, and a memory for its tape.
//
// Every wait of the bus master, the pixel source, the logit sink and the memory is random.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>
#include <vector>

#include "Vlbq_core.h"
#include "verilated.h"

static VerilatedContext context;
static Vlbq_core top(&context);
static std::mt19937 source(1);
static unsigned percent;
static uint64_t cycles;
static std::deque<uint32_t> logits;
static int refused;

struct Coming {
    uint64_t when;
    uint32_t word;
};
static std::vector<uint8_t> tape;
static std::deque<Coming> coming;

static bool stalls() { return source() % 100 < percent; }

// Only a core with external memory has these ports.
template <class T> static auto memory_before(T& core, int) -> decltype(void(core.tape_works)) {
    core.tape_works = 1;
    core.m_axis_tape_address_tready = !stalls();
    core.s_axis_tape_word_tvalid = !coming.empty() && coming.front().when <= cycles;
    if (!coming.empty()) core.s_axis_tape_word_tdata = coming.front().word;
}
template <class T> static void memory_before(T&, long) {}

template <class T> static auto memory_after(T& core, int) -> decltype(void(core.tape_works)) {
    if (core.s_axis_tape_word_tvalid) coming.pop_front();
    if (!core.m_axis_tape_address_tvalid || !core.m_axis_tape_address_tready) return;
    const size_t bytes = TAPE_BITS / 8, at = bytes * core.m_axis_tape_address_tdata;
    uint32_t word = 0;
    for (size_t i = 0; i < bytes && at + i < tape.size(); ++i) word |= uint32_t(tape[at + i]) << 8 * i;
    uint64_t when = cycles + 1 + source() % (percent ? 40 : 4);
    if (!coming.empty() && when <= coming.back().when) when = coming.back().when + 1;
    coming.push_back({when, word});
}
template <class T> static void memory_after(T&, long) {}

// The inputs of a cycle are set, and `tick` shows what the module says to them before the edge.
static void settle() {
    top.clk = 0;
    top.eval();
}

static void edge() {
    const bool logit = top.m_axis_logit_tvalid && top.m_axis_logit_tready;
    if (logit) logits.push_back(top.m_axis_logit_tdata);
    memory_after(top, 0);
    top.clk = 1;
    top.eval();
    ++cycles;
    top.m_axis_logit_tready = !stalls();
    memory_before(top, 0);
    settle();
}

static void idle_cycles() {
    while (stalls()) edge();
}

#ifdef BUS_AXI4LITE
static uint32_t transfer(bool write, uint32_t at, uint32_t data, unsigned strobes) {
    idle_cycles();
    if (!write) {
        top.s_axi_araddr = at;
        top.s_axi_arvalid = 1;
        settle();
        while (!top.s_axi_arready) edge();
        edge();
        top.s_axi_arvalid = 0;
        idle_cycles();
        top.s_axi_rready = 1;
        settle();
        while (!top.s_axi_rvalid) edge();
        refused = top.s_axi_rresp != 0;
        const uint32_t word = top.s_axi_rdata;
        edge();
        top.s_axi_rready = 0;
        return word;
    }
    const bool data_first = source() & 1;
    bool address_sent = false, data_sent = false;
    while (!address_sent || !data_sent) {
        top.s_axi_awaddr = at;
        top.s_axi_wdata = data;
        top.s_axi_wstrb = strobes;
        top.s_axi_awvalid = !address_sent && (!data_first || data_sent);
        top.s_axi_wvalid = !data_sent && (data_first || address_sent || !percent);
        settle();
        const bool a = top.s_axi_awvalid && top.s_axi_awready, d = top.s_axi_wvalid && top.s_axi_wready;
        edge();
        address_sent |= a;
        data_sent |= d;
    }
    top.s_axi_awvalid = top.s_axi_wvalid = 0;
    idle_cycles();
    top.s_axi_bready = 1;
    settle();
    while (!top.s_axi_bvalid) edge();
    refused = top.s_axi_bresp != 0;
    edge();
    top.s_axi_bready = 0;
    return 0;
}
#elif defined(BUS_WISHBONE)
static uint32_t transfer(bool write, uint32_t at, uint32_t data, unsigned strobes) {
    idle_cycles();
    top.wb_cyc = top.wb_stb = 1;
    top.wb_we = write;
    top.wb_adr = at / 4;
    top.wb_dat_w = data;
    top.wb_sel = strobes;
    settle();
    while (!top.wb_ack && !top.wb_err) edge();
    refused = top.wb_err;
    const uint32_t word = top.wb_dat_r;
    edge();
    top.wb_cyc = top.wb_stb = 0;
    return word;
}
#else
static uint32_t transfer(bool write, uint32_t at, uint32_t data, unsigned) {
    idle_cycles();
    top.bus_valid = 1;
    top.bus_write = write;
    top.bus_addr = at / 4;
    top.bus_w_data = data;
    settle();
    while (!top.bus_ack) edge();
    refused = top.bus_refused;
    const uint32_t word = top.bus_r_data;
    edge();
    top.bus_valid = 0;
    return word;
}
#endif

extern "C" {

void sim_start(unsigned stall_percent, const char* tape_file) {
    percent = stall_percent;
    if (FILE* file = fopen(tape_file, "rb")) {
        for (int byte; (byte = fgetc(file)) != EOF;) tape.push_back(uint8_t(byte));
        fclose(file);
    }
    top.rst = 1;
    settle();
    edge();
    edge();
    top.rst = 0;
    settle();
    edge();
}

uint32_t sim_read(uint32_t at) { return transfer(false, at, 0, 15); }
void sim_write(uint32_t at, uint32_t word) { transfer(true, at, word, 15); }
void sim_write_bytes(uint32_t at, uint32_t word, unsigned strobes) { transfer(true, at, word, strobes); }
int sim_refused(void) { return refused; }
int sim_irq(void) { return top.irq; }
int sim_failed(void) { return top.failed; }
uint64_t sim_cycles(void) { return cycles; }

void sim_pixel(uint64_t pixel, int first) {
    idle_cycles();
    top.s_axis_pixel_tdata = pixel;
    top.s_axis_pixel_tuser = first != 0;
    top.s_axis_pixel_tvalid = 1;
    settle();
    while (!top.s_axis_pixel_tready) edge();
    edge();
    top.s_axis_pixel_tvalid = 0;
    settle();
}

int sim_logit(uint32_t* word) {
    if (logits.empty()) {
        edge();
        return 0;
    }
    *word = logits.front();
    logits.pop_front();
    return 1;
}
}
