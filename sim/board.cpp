// A board's pins behind a pseudo-terminal, or in step with a host. The UART's pins are driven and
// sampled clock by clock.
//
//   bench FD CLOCK_HZ ONCE [+sdram_file=F] [+waves=W] [+record=R]
//       FD: master side of the terminal; ONCE: end when the host hangs up; F: see sdram.v; W: waves
//       R: a line for every cycle in which rx or tx changes: its number, rx before it, tx after it
//
//   bench pipe CLOCK_HZ LATENCY PACKET [+sdram_file=F]
//       Simulated time passes only while the host waits for an answer, so results do not depend on
//       the host's speed. Commands come through standard input, answers go to standard output
//       (sim/in_step.py). The USB bridge keeps received bytes until it has PACKET of them, or for
//       LATENCY microseconds after the first one.
//
// +settle=N: how many cycles the line may be silent and the core not busy, and yet an answer may
// come. After them the board is idle.
//
// Ends at SIGTERM or at the end of standard input, and closes the waves.
//
// The bit rate is the rate that the host has set on the terminal, as with a real port.
//
// The host's time-outs count simulated time. The simulation reports it in the size of the
// terminal's window: the number of rows is fixed, and the other three numbers count microseconds
// (lbq_hw/host/clock.py). While the board is idle, no cycles are simulated. Time then passes in
// steps of one poll of the terminal, no faster than real time.

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <asm/termbits.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "Vsystem.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_fst_c.h"
#endif

static VerilatedContext context;
static Vsystem* top;
static int line;
static uint64_t clock_hz;
static double bit;  // clock cycles, as the host counts them: not a whole number
static double slowest;  // the longest bit so far: the core may have been left at it
static uint64_t cycles;
static uint64_t simulated;  // cycles that were simulated, not skipped
static FILE* record;
static struct winsize window;
static const int IDLE_LOOK = 5;  // milliseconds
static uint64_t settle = 4096;

static volatile sig_atomic_t ended;
#if VM_TRACE
static VerilatedFstC waves;
#endif

static void end(int) { ended = 1; }

static void edge(bool level) {
    top->clk = level;
    top->eval();
#if VM_TRACE
    if (waves.isOpen()) waves.dump(context.time());
#endif
    context.timeInc(1);
}

static void cycle() {
    static int before = -1;
    const int rx = top->rx;
    ++cycles;
    edge(0);
    edge(1);
    ++simulated;
    const int now = rx << 1 | top->tx;
    if (record && now != before) {
        fprintf(record, "%llu %d %d\n", (unsigned long long)simulated, rx, top->tx);
        before = now;
    }
}

static void set_rate(uint64_t baud) {
    bit = double(clock_hz) / baud;
    slowest = std::max(slowest, bit);
}

static void take_rate() {
    struct termios2 settings;
    if (ioctl(line, TCGETS2, &settings) == 0 && settings.c_ospeed) set_rate(settings.c_ospeed);
}

// Whether nothing can happen any more after these cycles of silence: the longest frame has been
// executed and its answer begun, and the core has received the byte that it may have seen at
// another rate.
static bool nothing_left(uint64_t quiet) {
    return quiet > settle + uint64_t(std::max(64 * bit, 11 * slowest));
}

static void tell_time() {
    const uint64_t microseconds =
        cycles / clock_hz * 1000000 + cycles % clock_hz * 1000000 / clock_hz;
    window.ws_col = uint16_t(microseconds >> 32);
    window.ws_xpixel = uint16_t(microseconds >> 16);
    window.ws_ypixel = uint16_t(microseconds);
    ioctl(line, TIOCSWINSZ, &window);
}

// From the host to the rx pin, one byte at a time.
struct Sender {
    uint8_t queue[4096];
    ssize_t size = 0, at = 0;
    int left = 0;
    unsigned shift = 0;
    double due = 0;

    bool idle() const { return !left && at == size; }

    void step() {
        due -= 1;
        if (due > 0) return;
        if (!left && at < size) {
            shift = 0x200 | queue[at++] << 1;
            left = 10;
            due = 0;
        }
        if (!left) {
            due = 0;
            return;
        }
        top->rx = shift & 1;
        shift >>= 1;
        --left;
        due += bit;
    }
};

// From the tx pin to the host; each bit is sampled in its middle.
struct Receiver {
    int left = 0;
    unsigned shift = 0;
    double due = 0;
    uint8_t queue[4096];
    size_t size = 0;

    void step() {
        if (!left) {
            if (!top->tx) left = 10, due = bit / 2, shift = 0;
            return;
        }
        due -= 1;
        if (due > 0) return;
        due += bit;
        if (left == 10 && top->tx) {
            left = 0;
            return;
        }
        shift |= unsigned(top->tx) << (10 - left);
        if (--left) return;
        if (shift & 0x200) queue[size++] = uint8_t(shift >> 1);
        if (size == sizeof queue) flush();
    }

    void flush() {
        for (size_t done = 0; done < size;) {
            ssize_t count = write(line, queue + done, size - done);
            if (count <= 0) break;  // the host does not read
            done += size_t(count);
        }
        size = 0;
    }
};

// Bytes that the bridge still keeps, and the time of the first one.
struct Bridge {
    std::vector<uint8_t> held, given;
    uint64_t latency, packet, since = 0;

    void take(Receiver& receiver) {
        if (held.empty() && receiver.size) since = cycles;
        held.insert(held.end(), receiver.queue, receiver.queue + receiver.size);
        receiver.size = 0;
        if (!held.empty() && (held.size() >= packet || cycles >= due())) {
            given.insert(given.end(), held.begin(), held.end());
            held.clear();
        }
    }

    uint64_t due() const { return since + latency; }
};

static bool get(void* data, size_t size) { return fread(data, 1, size, stdin) == size; }
static void put(const void* data, size_t size) { fwrite(data, 1, size, stdout); }

// Executes commands of sim/in_step.py until their end: w, bytes to send; b, another rate; r, run
// until there is an answer, or for a number of cycles.
static void in_step(Sender& sender, Receiver& receiver, Bridge& bridge) {
    std::vector<uint8_t> outgoing;
    uint64_t quiet = 0;
    for (char command; !ended && get(&command, 1);) {
        uint64_t number;
        if (!get(&number, sizeof number)) return;
        if (command == 'b') {
            set_rate(number);
        } else if (command == 'w') {
            const size_t before = outgoing.size();
            outgoing.resize(before + number);
            if (!get(outgoing.data() + before, number)) return;
        } else {
            const uint64_t end = cycles + number;
            for (bridge.take(receiver); bridge.given.empty() && cycles < end; bridge.take(receiver)) {
                if (sender.idle() && !outgoing.empty()) {
                    sender.at = 0;
                    sender.size = std::min(outgoing.size(), sizeof sender.queue);
                    memcpy(sender.queue, outgoing.data(), sender.size);
                    outgoing.erase(outgoing.begin(), outgoing.begin() + sender.size);
                }
                sender.step();
                cycle();
                receiver.step();
                quiet = sender.idle() && !receiver.left && !top->busy ? quiet + 1 : 0;
                // As with a terminal: the board is idle, so only the wait can end.
                if (!nothing_left(quiet) || !outgoing.empty()) continue;
                if (receiver.size == 0)
                    cycles = bridge.held.empty() ? end : std::min(end, std::max(cycles, bridge.due()));
            }
            const uint64_t size = bridge.given.size();
            put(&cycles, sizeof cycles);
            put(&size, sizeof size);
            put(bridge.given.data(), size);
            fflush(stdout);
            bridge.given.clear();
        }
    }
}

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    context.commandArgs(argc, argv);
    top = new Vsystem(&context);  // after the arguments, which may choose initial unknown values
    const bool piped = !strcmp(argv[1], "pipe");
    line = piped ? -1 : atoi(argv[1]);
    clock_hz = strtoull(argv[2], nullptr, 10);
    const bool once = atoi(argv[3]);
    static Sender sender;
    static Receiver receiver;
    bool met = false;
    signal(SIGTERM, end);
#if VM_TRACE
    const std::string file = context.commandArgsPlusMatch("waves=");
    if (!file.empty()) {
        context.traceEverOn(true);
        top->trace(&waves, 99);
        waves.open(file.c_str() + sizeof("+waves=") - 1);
    }
#endif
    const std::string changes = context.commandArgsPlusMatch("record=");
    if (!changes.empty()) record = fopen(changes.c_str() + sizeof("+record=") - 1, "w");
    const std::string settling = context.commandArgsPlusMatch("settle=");
    if (!settling.empty()) settle = strtoull(settling.c_str() + sizeof("+settle=") - 1, nullptr, 10);
    take_rate();
    ioctl(line, TIOCGWINSZ, &window);
    top->rx = 1;
    top->rst = 1;
    cycle();
    cycle();
    top->rst = 0;
    if (piped) {
        static Bridge bridge;
        bridge.latency = strtoull(argv[3], nullptr, 10) * clock_hz / 1000000;
        bridge.packet = argc > 4 ? strtoull(argv[4], nullptr, 10) : 1;
        in_step(sender, receiver, bridge);
        ended = 1;
    }
    for (uint64_t quiet = 0; !ended; ++quiet) {
        sender.step();
        cycle();
        receiver.step();
        if (!sender.idle() || receiver.left || top->busy) quiet = 0;
        // Poll the terminal now and then. Wait longer if the board is idle.
        const bool still = nothing_left(quiet);
        if (!still && cycles % 256) continue;
        // Pass answers on before the time is reported, also while the host still sends.
        receiver.flush();
        tell_time();
        if (!sender.idle()) continue;
        struct pollfd wait = {line, POLLIN, 0};
        const int found = poll(&wait, 1, still ? IDLE_LOOK : 0);
        if (wait.revents & POLLIN) {
            take_rate();
            sender.at = 0;
            sender.size = read(line, sender.queue, sizeof sender.queue);
            if (sender.size < 0) sender.size = 0;
            met = true;
            quiet = 0;
        } else if (wait.revents & POLLHUP) {
            if (once && met) break;
            usleep(20000);
        } else if (still && found == 0) {
            cycles += clock_hz * IDLE_LOOK / 1000;
        }
    }
#if VM_TRACE
    if (waves.isOpen()) waves.close();
#endif
    if (record) {
        fprintf(record, "%llu %d %d\n", (unsigned long long)simulated, top->rx, top->tx);
        fclose(record);
    }
    top->final();
    delete top;
    return 0;
}
