/* Runs inputs of a file on a simulated core and prints their logits, one line per input.

   main HOW STALLS INPUTS [TAPE]: HOW is bus, load (bus, after the program is loaded) or stream. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bus.h"
#include "lbq_core.h"

static uint8_t input[LBQ_INPUT_BYTES];
static lbq_logit logits[LBQ_CLASSES];

static int fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    return 1;
}

static void stream(uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += LBQ_CHANNELS) {
        uint64_t pixel = 0;
        for (uint32_t channel = 0; channel < LBQ_CHANNELS; ++channel) {
            uint64_t level = input[at + channel] >> LBQ_SHIFT;
            pixel |= (level < LBQ_MOST ? level : LBQ_MOST) << channel * LBQ_BITS;
        }
        sim_pixel(pixel, at == 0);
    }
}

static int take_logits(void)
{
    for (uint32_t at = 0; at < LBQ_CLASSES; ++at) {
        uint64_t value = 0;
        for (uint32_t part = 0; part < sizeof(lbq_logit) / 4; ++part) {
            uint32_t word;
            uint32_t looks = 0;
            while (!sim_logit(&word))
                if (++looks > 200000000u || sim_failed())
                    return 0;
            value |= (uint64_t)word << 32 * part;
        }
        logits[at] = (lbq_logit)value;
    }
    return 1;
}

/* What a host can do wrong is refused, and harms nothing. */
static int hostile(struct lbq *core)
{
    sim_write(LBQ_SOURCE, 0);
    sim_write(LBQ_PIXELS, 0x12345678);
    if (!sim_refused()) return fail("pixels were taken although they come from the stream");
    sim_read(LBQ_PIXELS);
    if (!sim_refused()) return fail("pixels were read");
    sim_write(LBQ_INPUTS, 1);
    if (!sim_refused()) return fail("a counter was written");
    sim_read(LBQ_INPUTS + 4);
    if (!sim_refused()) return fail("a register was read that does not exist");
    sim_write_bytes(LBQ_SOURCE, 1, 1);
#ifndef BUS_PLAIN
    if (!sim_refused()) return fail("a byte was written");
    if (sim_read(LBQ_SOURCE) != 0) return fail("a byte that was refused was written");
#endif
    sim_write(LBQ_ID, 0);
    if (lbq_poll(core) == LBQ_OK) return fail("a run has ended that was never started");
    if (sim_read(LBQ_ERROR) != LBQ_ERROR_ADDRESS) return fail("a register was written that is not");
    sim_write(LBQ_SOURCE, 1);
    sim_write(LBQ_PIXELS, 0xffffffff); /* dropped by the driver's next input */
    return 0;
}

int main(int argc, char **argv)
{
    struct lbq core;
    unsigned stalls = 0;
    int number = 0, streams;
    FILE *inputs;

    if (argc < 4 || sscanf(argv[2], "%u", &stalls) != 1) return fail("main HOW STALLS INPUTS [TAPE]");
    streams = strcmp(argv[1], "stream") == 0;
    inputs = fopen(argv[3], "rb");
    if (!inputs) return fail("the inputs cannot be read");
    sim_start(stalls, argc > 4 ? argv[4] : "");
    if (!streams) {
        int result = lbq_open(&core, 0);
        if (result != LBQ_OK) return fail(lbq_message(result));
        if (hostile(&core)) return 1;
#ifdef HAS_LOAD
        if (strcmp(argv[1], "load") == 0 && (result = lbq_load(&core)) != LBQ_OK)
            return fail(lbq_message(result));
#endif
        lbq_interrupt(&core, 1);
    }
    while (fread(input, 1, sizeof input, inputs) == sizeof input) {
        if (streams) {
            /* An input that breaks off is dropped by the first pixel of the next one. */
            if (number == 1) stream(LBQ_INPUT_BYTES / LBQ_CHANNELS / 2 * LBQ_CHANNELS);
            stream(LBQ_INPUT_BYTES);
            if (!take_logits()) return fail("the logits do not come");
        } else {
            int result = lbq_send(&core, input);
            if (result == LBQ_OK && sim_irq()) return fail("irq rose before the end");
            if (result == LBQ_OK) result = lbq_wait(&core);
            if (result == LBQ_OK && !sim_irq()) return fail("irq did not rise");
            if (result == LBQ_OK) result = lbq_read(&core, logits);
            if (result != LBQ_OK) return fail(lbq_message(result));
            if (sim_read(LBQ_INPUTS) != (uint32_t)number + 1) return fail("inputs are not counted");
        }
        for (int at = 0; at < LBQ_CLASSES; ++at) printf("%" PRId64 " ", (int64_t)logits[at]);
        printf("\n");
        ++number;
    }
    fprintf(stderr, "%d inputs, %" PRIu64 " cycles\n", number, sim_cycles());
    return 0;
}
