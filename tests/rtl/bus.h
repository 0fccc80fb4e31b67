/* The driver reaches a simulated core by these functions of bench.cpp. */

#include <stdint.h>

void sim_start(unsigned stall_percent, const char *tape_file);
uint32_t sim_read(uint32_t at);
void sim_write(uint32_t at, uint32_t word);
void sim_write_bytes(uint32_t at, uint32_t word, unsigned strobes);
int sim_refused(void);
int sim_irq(void);
int sim_failed(void);
uint64_t sim_cycles(void);
void sim_pixel(uint64_t pixel, int first);
int sim_logit(uint32_t *word);

#define LBQ_READ(core, at) ((void)(core), sim_read(at))
#define LBQ_WRITE(core, at, value) ((void)(core), sim_write(at, value))
