/* Driver of the LBQ core for {{ name }}. It needs no heap and no library, only C headers. */

#include "{{ module }}.h"

/* Define both if the core is not reached by memory-mapped accesses of 32 bits. */
#ifndef LBQ_READ
#define LBQ_READ(core, at) ((core)->base[(at) / 4u])
#define LBQ_WRITE(core, at, value) ((core)->base[(at) / 4u] = (value))
#endif

#define LBQ_START 1u
#define LBQ_CLEAR 2u

static int lbq_check(struct lbq *core)
{
    if (LBQ_READ(core, LBQ_STATUS) & LBQ_STATUS_ERROR)
        return (int)LBQ_READ(core, LBQ_ERROR);
    return LBQ_OK;
}

int lbq_open(struct lbq *core, volatile void *base)
{
    core->base = (volatile uint32_t *)base;
    if (LBQ_READ(core, LBQ_ID) != LBQ_MAGIC)
        return LBQ_NO_CORE;
    if (LBQ_READ(core, LBQ_DIGEST) != LBQ_CORE_DIGEST)
        return LBQ_OTHER_CORE;
    return LBQ_OK;
}

{% if not external %}
{% for part in program %}
static const uint32_t lbq_{{ part.name }}[] = {
{% for line in part.lines %}
    {{ line }},
{% endfor %}
};

{% endfor %}
static void lbq_fill(struct lbq *core, uint32_t at, const uint32_t *words, uint32_t entries,
                     uint32_t slices, uint32_t stride)
{
    for (uint32_t entry = 0; entry < entries; ++entry)
        for (uint32_t slice = 0; slice < slices; ++slice)
            LBQ_WRITE(core, at + 4u * (entry * stride + slice), words[entry * slices + slice]);
}

int lbq_load(struct lbq *core)
{
    LBQ_WRITE(core, LBQ_CONTROL, LBQ_CLEAR);
{% for part in program %}
    lbq_fill(core, 0x{{ "%05x" | format(part.at) }}u, lbq_{{ part.name }}, {{ part.entries }}, {{ part.slices }}, {{ part.stride }});
{% endfor %}
    return lbq_check(core);
}

{% endif %}
int lbq_send(struct lbq *core, const uint8_t *input)
{
    uint64_t word = 0;
    unsigned fill = 0;

    if (LBQ_READ(core, LBQ_STATUS) & LBQ_STATUS_BUSY)
        return LBQ_ERROR_BUSY;
    LBQ_WRITE(core, LBQ_SOURCE, 1u);
    LBQ_WRITE(core, LBQ_ENDED, 1u);
    for (uint32_t at = 0; at < LBQ_INPUT_BYTES; ++at) {
        uint32_t level = input[at] >> LBQ_SHIFT;
        word |= (uint64_t)(level < LBQ_MOST ? level : LBQ_MOST) << fill;
        fill += LBQ_BITS;
        if (fill >= 32u) {
            LBQ_WRITE(core, LBQ_PIXELS, (uint32_t)word);
            word >>= 32;
            fill -= 32u;
        }
    }
    if (fill)
        LBQ_WRITE(core, LBQ_PIXELS, (uint32_t)word);
    return LBQ_OK;
}

int lbq_poll(struct lbq *core)
{
    if (!(LBQ_READ(core, LBQ_ENDED) & 1u))
        return LBQ_NOT_READY;
    return lbq_check(core);
}

int lbq_wait(struct lbq *core)
{
    for (uint32_t look = 0; look < LBQ_LOOKS; ++look) {
        int result = lbq_poll(core);
        if (result != LBQ_NOT_READY)
            return result;
    }
    return LBQ_TIMEOUT;
}

int lbq_read(struct lbq *core, lbq_logit logits[LBQ_CLASSES])
{
    static const uint16_t entries[LBQ_CLASSES] = { {{ logits | join(", ") }} };

    for (uint32_t at = 0; at < LBQ_CLASSES; ++at) {
{% if logit_slices == 1 %}
        logits[at] = (lbq_logit)LBQ_READ(core, LBQ_MEMORY_LOGITS + 4u * entries[at]);
{% else %}
        uint64_t low = LBQ_READ(core, LBQ_MEMORY_LOGITS + 8u * entries[at]);
        uint64_t high = LBQ_READ(core, LBQ_MEMORY_LOGITS + 8u * entries[at] + 4u);
        logits[at] = (lbq_logit)(high << 32 | low);
{% endif %}
    }
    return lbq_check(core);
}

int lbq_run(struct lbq *core, const uint8_t *input, lbq_logit logits[LBQ_CLASSES])
{
    int result = lbq_send(core, input);

    if (result == LBQ_OK)
        result = lbq_wait(core);
    if (result == LBQ_OK)
        result = lbq_read(core, logits);
    return result;
}

int lbq_class(const lbq_logit logits[LBQ_CLASSES])
{
    int best = 0;

    for (int at = 1; at < LBQ_CLASSES; ++at)
        if (logits[at] > logits[best])
            best = at;
    return best;
}

void lbq_interrupt(struct lbq *core, int enable)
{
    LBQ_WRITE(core, LBQ_INTERRUPT, enable ? 1u : 0u);
}

void lbq_acknowledge(struct lbq *core)
{
    LBQ_WRITE(core, LBQ_ENDED, 1u);
}

void lbq_stream(struct lbq *core)
{
    LBQ_WRITE(core, LBQ_SOURCE, 0u);
}

uint64_t lbq_cycles(struct lbq *core)
{
    return (uint64_t)LBQ_READ(core, LBQ_CYCLES_HIGH) << 32 | LBQ_READ(core, LBQ_CYCLES);
}

const char *lbq_message(int result)
{
    switch (result) {
    case LBQ_OK: return "nothing went wrong";
    case LBQ_NO_CORE: return "there is no LBQ core at this address: see where the bus has it";
    case LBQ_OTHER_CORE: return "the core was made for another driver: write both anew";
    case LBQ_TIMEOUT: return "the run did not end: see that the core has its clock";
    case LBQ_NOT_READY: return "the run has not ended";
{% for code in errors if code %}
    case LBQ_ERROR_{{ code.name }}: return "{{ code.meaning }}";
{% endfor %}
    default: return "not a result of this driver";
    }
}
