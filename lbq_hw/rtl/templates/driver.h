/* Driver of the LBQ core for {{ name }}: addresses, and the functions of {{ module }}.c. */

#ifndef LBQ_CORE_H
#define LBQ_CORE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Byte addresses, relative to the core's base; registers.md explains them. */
{% for one in registers %}
#define LBQ_{{ one.register.name | upper }} 0x{{ "%05x" | format(one.at) }}u
{% endfor %}
{% for one in windows %}
#define LBQ_MEMORY_{{ one.region.name }} 0x{{ "%05x" | format(one.at) }}u
{% endfor %}
#define LBQ_ADDRESS_BITS {{ address_bits }}

#define LBQ_MAGIC 0x{{ "%08x" | format(magic) }}u
#define LBQ_CORE_DIGEST 0x{{ "%08x" | format(digest) }}u

/* Bits of the register status. */
#define LBQ_STATUS_BUSY 1u
#define LBQ_STATUS_DONE 2u
#define LBQ_STATUS_ERROR 4u

/* The input: FRAMES pictures, row by row, the channels of a pixel side by side, a byte each. */
#define LBQ_FRAMES {{ layout.frames }}
#define LBQ_HEIGHT {{ layout.height }}
#define LBQ_WIDTH {{ layout.width }}
#define LBQ_CHANNELS {{ layout.channels }}
#define LBQ_INPUT_BYTES (LBQ_FRAMES * LBQ_HEIGHT * LBQ_WIDTH * LBQ_CHANNELS)
/* A byte is sent as min(byte >> SHIFT, MOST), in BITS bits. */
#define LBQ_BITS {{ layout.bits }}
#define LBQ_SHIFT {{ shift }}
#define LBQ_MOST {{ capacity }}

#define LBQ_CLASSES {{ logits | length }}
typedef int{{ 32 * logit_slices }}_t lbq_logit;

/* What functions return: LBQ_OK, an error of the driver (negative) or of the core (positive). */
#define LBQ_OK 0
#define LBQ_NO_CORE (-1)
#define LBQ_OTHER_CORE (-2)
#define LBQ_TIMEOUT (-3)
#define LBQ_NOT_READY (-4)
{% for code in errors if code %}
#define LBQ_ERROR_{{ code.name }} {{ code.value }}
{% endfor %}

struct lbq {
    volatile uint32_t *base;
};

/* How often lbq_wait polls: at least once for each cycle that a run can take. */
#ifndef LBQ_LOOKS
#define LBQ_LOOKS {{ most_cycles or 0x7fffffff }}u
#endif

/* Check that the core is at an address. */
int lbq_open(struct lbq *core, volatile void *base);
{% if not external %}
/* Write the program. Call this if the memories of the device have no initial values; otherwise the
   program is in them after configuration. */
int lbq_load(struct lbq *core);
{% endif %}
/* Send one input of LBQ_INPUT_BYTES; the core runs as soon as the input is complete. */
int lbq_send(struct lbq *core, const uint8_t *input);
/* Whether the run has ended: LBQ_OK, LBQ_NOT_READY, or an error. */
int lbq_poll(struct lbq *core);
/* Wait until the run has ended. */
int lbq_wait(struct lbq *core);
/* Read the logits of the last run. */
int lbq_read(struct lbq *core, lbq_logit logits[LBQ_CLASSES]);
/* Send, wait and read. */
int lbq_run(struct lbq *core, const uint8_t *input, lbq_logit logits[LBQ_CLASSES]);
/* The index of the largest logit; on a tie, the first. */
int lbq_class(const lbq_logit logits[LBQ_CLASSES]);
/* Enable or disable irq at the end of a run; lbq_send and lbq_acknowledge clear irq. */
void lbq_interrupt(struct lbq *core, int enable);
void lbq_acknowledge(struct lbq *core);
/* Take pixels from the stream again. */
void lbq_stream(struct lbq *core);
/* Cycles of the last run. */
uint64_t lbq_cycles(struct lbq *core);
/* What a result means. */
const char *lbq_message(int result);

#ifdef __cplusplus
}
#endif

#endif
