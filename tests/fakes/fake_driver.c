/* A fake of the driver's trace calls in user space: empty functions that uprobes name into the system amdxdna. Computes nothing. */
#define CALL __attribute__((noinline, visibility("default")))
#define BODY __asm__ volatile("" ::: "memory")

CALL void fake_debug_point(const char *name, unsigned long number, const char *str) { BODY; }
CALL void fake_job(const char *name, unsigned long seq, const char *str) { BODY; }
CALL void fake_job_queue(const char *name, unsigned long seq, const char *str) { BODY; }
CALL void fake_set_tail(const char *name, unsigned long chann, unsigned long id, unsigned long opcode) { BODY; }
CALL void fake_irq(const char *name, unsigned long chann) { BODY; }
