/* The exchange loop: gather, set, doStep, get, guard and record over the arrays of a step plan.

   It runs the same plan as the loop in Python and gives the same bits: terms of a sum are added in row
   order, as factor * value + offset, without contraction. It calls FMUs through their own functions
   and reads and writes the bus in place. Where a component lives in Python, the program of operations
   is run in pieces around it. On the first thing that is wrong it stops and says what and where;
   the message is made in Python. */

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef int (*Set2)(void *, const uint32_t *, size_t, const double *);
typedef int (*Set3)(void *, const uint32_t *, size_t, const double *, size_t);
typedef int (*Get2)(void *, const uint32_t *, size_t, void *);
typedef int (*Get3)(void *, const uint32_t *, size_t, void *, size_t);
typedef int (*Step2)(void *, double, double, int);
typedef int (*Step3)(void *, double, double, bool, bool *, bool *, bool *, double *);

/* Outputs of one type. Without a buffer they are doubles that go straight to the bus, in its order. */
enum { FLOAT64, INT32, BYTE };
typedef struct {
    void *get;
    const uint32_t *references;
    int64_t count, size, type, taken; /* value references; values in the buffer; values that are used */
    void *buffer;
    const int64_t *inside, *outside;  /* from the buffer to the FMU's outputs */
} Block;

/* An FMU whose bound inputs are Reals, and whose ports on each side are a contiguous part of the bus. */
typedef struct {
    int64_t version, divider;
    void *instance, *set, *step;
    const uint32_t *set_references;
    int64_t set_count, blocks_count;
    const Block *blocks;
    int64_t in_at, in_size, out_at, out_size; /* values on the bus */
    double *scratch;                  /* in_size values */
    const double *own;                /* what an input that nothing drives goes on with */
    double last_size;                 /* of the step that ends at the stop time [s] */
    bool *event, *terminate, *early;  /* FMI 3 */
    double *reached;
} Hosted;

/* bus[target] = sum of factor * bus[source] + offset over rows start..next start. */
typedef struct {
    int64_t count;
    const int64_t *targets, *starts, *sources;
    const double *factors, *offsets;
} Gather;

enum { GATHER, HOSTED };
typedef struct { int64_t kind, index; } Operation;

/* Time is (a + tick * b) / c seconds, and the stop time from tick `ticks` on. */
typedef struct {
    double *bus;
    const Hosted *hosted;
    const Gather *gathers;
    const Operation *operations;
    int64_t is_jacobi, a, b, c, ticks;
    double stop;
    int64_t outputs;                  /* the first entries of the bus must stay finite */
    int64_t columns;
    const int64_t *recorded;
    const int64_t *held;
    const double *held_values;
    int64_t held_count;
    int64_t failed_operation, failed_index, failed_status, failed_block;
} Exchange;

enum { FINE, NOT_FINITE_INPUT, SET_FAILED, STEP_FAILED, GET_FAILED, NOT_FINITE_OUTPUT };
enum { OK, WARNING, DISCARD };

static double time_at(const Exchange *x, int64_t tick) {
    if (x->ticks >= 0 && tick >= x->ticks) return x->stop;
    return (double)(x->a + tick * x->b) / (double)x->c;
}

static int gather(Exchange *x, int64_t index) {
    const Gather *g = &x->gathers[index];
    double *bus = x->bus;
    for (int64_t k = 0; k < g->count; k++) {
        double sum = 0;
        for (int64_t row = g->starts[k]; row < g->starts[k + 1]; row++) {
            double term = bus[g->sources[row]] * g->factors[row];
            term += g->offsets[row];
            sum = row == g->starts[k] ? term : term + sum;
        }
        if (!isfinite(sum)) return NOT_FINITE_INPUT;
        bus[g->targets[k]] = sum;
    }
    for (int64_t k = 0; k < x->held_count; k++) bus[x->held[k]] = x->held_values[k];
    return FINE;
}

static int set(const Exchange *x, const Hosted *h) {
    const double *values = x->bus + h->in_at;
    if (!h->in_size) return OK;
    for (int64_t k = 0; k < h->in_size; k++) {
        if (!isnan(values[k])) continue;
        for (int64_t j = 0; j < h->in_size; j++) h->scratch[j] = isnan(values[j]) ? h->own[j] : values[j];
        values = h->scratch;
        break;
    }
    return h->version == 2 ? ((Set2)h->set)(h->instance, h->set_references, (size_t)h->set_count, values)
                           : ((Set3)h->set)(h->instance, h->set_references, (size_t)h->set_count, values, (size_t)h->in_size);
}

static int do_step(const Exchange *x, const Hosted *h, int64_t start, int64_t end) {
    double from = time_at(x, start);
    double size = x->ticks >= 0 && end >= x->ticks ? h->last_size : (double)(x->b * (end - start)) / (double)x->c;
    int status;
    if (h->version == 2) return ((Step2)h->step)(h->instance, from, size, 1);
    status = ((Step3)h->step)(h->instance, from, size, true, h->event, h->terminate, h->early, h->reached);
    /* A step that stops short, or an FMU that wants to end, counts as discarded. */
    return status <= WARNING && (*h->terminate || *h->early) ? DISCARD : status;
}

static int bad(int status) { return status < OK || status > WARNING; }

static int get(Exchange *x, const Hosted *h) {
    double *outputs = x->bus + h->out_at;
    for (int64_t n = 0; n < h->blocks_count; n++) {
        const Block *b = &h->blocks[n];
        void *values = b->buffer ? b->buffer : (void *)outputs;
        int status = h->version == 2
            ? ((Get2)b->get)(h->instance, b->references, (size_t)b->count, values)
            : ((Get3)b->get)(h->instance, b->references, (size_t)b->count, values, (size_t)b->size);
        if (bad(status)) {
            x->failed_block = n;
            return status;
        }
        if (!b->buffer) continue;
        for (int64_t k = 0; k < b->taken; k++)
            outputs[b->outside[k]] = b->type == FLOAT64 ? ((const double *)values)[b->inside[k]]
                                   : b->type == INT32 ? (double)((const int32_t *)values)[b->inside[k]]
                                                      : (double)((const uint8_t *)values)[b->inside[k]];
    }
    return OK;
}

/* Latch, step and publish one FMU, as far as its communication period says. */
static int advance(Exchange *x, int64_t index, int64_t tick) {
    const Hosted *h = &x->hosted[index];
    int64_t start = tick - tick % h->divider;
    int begins = start == tick;
    int ends = (tick + 1) % h->divider == 0 || (x->ticks >= 0 && tick + 1 >= x->ticks);
    int status;
    if (x->is_jacobi ? begins : ends) {
        status = set(x, h);
        if (bad(status)) { x->failed_status = status; return SET_FAILED; }
    }
    if (!ends) return FINE;
    status = do_step(x, h, start, tick + 1);
    if (bad(status)) { x->failed_status = status; return STEP_FAILED; }
    status = get(x, h);
    if (bad(status)) { x->failed_status = status; return GET_FAILED; }
    for (int64_t k = 0; k < h->out_size; k++)
        if (!isfinite(x->bus[h->out_at + k])) return NOT_FINITE_OUTPUT;
    return FINE;
}

/* The operations first..last of one tick. */
EXPORT int exchange_run(Exchange *x, int64_t first, int64_t last, int64_t tick) {
    for (int64_t k = first; k < last; k++) {
        const Operation *o = &x->operations[k];
        int what = o->kind == GATHER ? gather(x, o->index) : advance(x, o->index, tick);
        if (what) {
            x->failed_operation = k;
            x->failed_index = o->index;
            return what;
        }
    }
    return FINE;
}

/* The end of a tick: every output must be finite; the recorded entries go to a row. */
EXPORT int exchange_finish(Exchange *x, int64_t tick, double *time, double *row) {
    for (int64_t k = 0; k < x->outputs; k++)
        if (!isfinite(x->bus[k])) return NOT_FINITE_OUTPUT;
    *time = time_at(x, tick + 1);
    for (int64_t k = 0; k < x->columns; k++) row[k] = x->bus[x->recorded[k]];
    return FINE;
}

/* Whole ticks, where every component is here; the number of ticks done. */
EXPORT int64_t exchange_ticks(Exchange *x, int64_t operations, int64_t tick, int64_t count, double *times, double *rows,
                              int *what) {
    for (int64_t done = 0; done < count; done++) {
        *what = exchange_run(x, 0, operations, tick + done);
        if (!*what) *what = exchange_finish(x, tick + done, times + done, rows + done * x->columns);
        if (*what) return done;
    }
    *what = FINE;
    return count;
}
