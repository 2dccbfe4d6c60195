/* The runtime of a compiled model, first the part that both FMI versions share: events and initialization
   here, integration in runtime_solver.c, instances and values in runtime_values.c.

   The generated part above defines the sizes (NV slots, NX states, ND discrete slots, NC when-triggers,
   NCLK clocks, NTEV instants, NREL moving relations, NROOT event indicators, NASSERT assertions,
   NTEXT texts of the host), its tables, and the functions m_calculated, m_starts, m_initial,
   m_continuous, m_rates, m_event, m_relations, m_roots, m_instants, m_assert,
   m_message and m_tangent.
   All values of an instance are in one plain struct, so that an FMU state is a copy of it. */

#define OK 0
#define WARNING 1
#define DISCARD 2
#define FAILED 3

enum { SETUP, INITIALIZING, RUNNING };
enum { CLEAN = 0, STALE = 1, PARAMETERS = 2, INPUTS = 4 };
/* What may be done with a slot. */
enum { TUNABLE, FIXED, INPUT, START, COMPUTED, BAKED };

typedef void (*Log2)(void *environment, const char *instance, int status, const char *category, const char *message, ...);
typedef void (*Log3)(void *environment, int status, const char *category, const char *message);
typedef struct {
    Log2 logger;
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void *step_finished;
    void *environment;
} Callbacks2;

typedef struct {
    State s;
    const Callbacks2 *callbacks;
    Log3 log3;
    void *environment;
    int is_exchange, has_event_mode, may_return_early;
    char name[128];
} Instance;

static void report(Instance *I, int status, const char *category, const char *format, ...) {
    char text[512], escaped[sizeof text * 2];
    size_t at = 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (I->log3) I->log3(I->environment, status, category, text);
    if (!I->callbacks || !I->callbacks->logger) return;
    /* The message of FMI 2 is a format; many hosts cannot read what would follow it. */
    for (const char *c = text; *c; c++) {
        if (*c == '%') escaped[at++] = '%';
        escaped[at++] = *c;
    }
    escaped[at] = 0;
    I->callbacks->logger(I->callbacks->environment, I->name, status, category, escaped);
}

/* ---- time */

static double slack(double t) { return 1e-10 * (1.0 + fabs(t)); }

#if NCLK > 0
static double clock_time(int k, long long n) {
    return CLOCK[k][2] / CLOCK[k][3] + (double)n * CLOCK[k][0] / CLOCK[k][1];
}
#endif

/* The next event in time. Events that rounding alone keeps apart are one event, at the latest of their
   times: none of them may find that its time has not come. */
static double next_event(State *s) {
    double next = INFINITY;
#if NCLK + NTEV > 0
    double times[NCLK + NTEV], first = INFINITY;
#if NTEV > 0
    m_instants(s, times);
    for (int k = 0; k < NTEV; k++)
        if (times[k] <= s->time + slack(s->time)) times[k] = INFINITY;
#endif
#if NCLK > 0
    for (int k = 0; k < NCLK; k++) times[NTEV + k] = clock_time(k, s->next[k]);
#endif
    for (int k = 0; k < NCLK + NTEV; k++) first = fmin(first, times[k]);
    next = first;
    for (int k = 0; k < NCLK + NTEV; k++)
        if (times[k] <= first + slack(first)) next = fmax(next, times[k]);
#else
    (void)s;
#endif
    return next;
}

/* ---- events */

static void start_clocks(State *s) {
#if NCLK > 0
    for (int k = 0; k < NCLK; k++) {
        double n = ceil((s->time - CLOCK[k][2] / CLOCK[k][3]) * CLOCK[k][1] / CLOCK[k][0] - 1e-9);
        s->next[k] = n > 0 ? (long long)n : 0;
    }
#else
    (void)s;
#endif
}

/* Event iteration at the present time; clocks that are due tick once, in the first pass. */
static int event(Instance *I) {
    State *s = &I->s;
#if NCLK > 0
    for (int k = 0; k < NCLK; k++) {
        double t = clock_time(k, s->next[k]);
        s->tick[k] = t <= s->time + slack(t);
        if (s->tick[k]) s->next[k]++;
    }
#endif
    /* The values before the event are those at the end of the last one, whatever was computed since. */
    for (int k = 0; k < ND; k++) s->pre[k] = s->last[k];
    for (int pass = 0; pass < 64; pass++) {
        int changed = 0;
        s->reinit = 0;
        m_event(s);
        for (int k = 0; k < ND; k++) {
            changed |= s->v[DISCRETE[k]] != s->pre[k];
            s->pre[k] = s->last[k] = s->v[DISCRETE[k]];
        }
        for (int k = 0; k < NC; k++) {
            changed |= s->level[k] != s->held[k];
            s->held[k] = s->level[k];
        }
        for (int k = 0; k < NCLK; k++) s->tick[k] = 0;
        if (!changed && !s->reinit) return OK;
    }
    report(I, FAILED, "logStatusError", "the events at t = %.12g do not settle in 64 passes", s->time);
    s->failed = 1;
    return FAILED;
}

static int check(Instance *I) {
    State *s = &I->s;
    if (s->failed) {
        report(I, FAILED, "logStatusError", "a system of equations has no solution at t = %.12g", s->time);
        return FAILED;
    }
#if NASSERT > 0
    for (int k = 0; k < NASSERT; k++) {
        char text[400];
        if (!m_assert(s, k)) continue;
        s->fired[k] = 0;
        text[0] = 0;
        m_message(s, k, text, sizeof text);
        if (ASSERT_KIND[k] == 2) {
            s->ended = 1;
            report(I, OK, "logEvents", "terminated at t = %.12g: %s", s->time, text);
            continue;
        }
        if (ASSERT_KIND[k] == 1) {
            /* A lasting condition is reported once. */
            if (!s->warned[k])
                report(I, WARNING, "logStatusWarning", "assertion at t = %.12g: %s", s->time, text);
            s->warned[k] = 1;
            continue;
        }
        report(I, FAILED, "logStatusError", "assertion failed at t = %.12g: %s", s->time, text);
        return FAILED;
    }
#endif
    return OK;
}

/* ---- initialization */

/* The initialization problem from the start values as they are now. Commits nothing: it may be solved
   again after another input was set. */
static void solve_initial(Instance *I) {
    State *s = &I->s;
    m_calculated(s);
    m_starts(s);
    for (int k = 0; k < NX; k++) s->v[STATE[k]] = s->start[STATE[k]];
    for (int k = 0; k < ND; k++) s->v[DISCRETE[k]] = s->pre[k] = s->start[DISCRETE[k]];
    /* No edge fires during initialization, only initial() itself. */
    for (int k = 0; k < NC; k++) s->held[k] = 1;
    for (int k = 0; k < NCLK; k++) s->tick[k] = 0;
    s->initial = 1;
    for (int pass = 0; pass < 16; pass++) {
        int changed = 0;
        double before[ND + 1];
        for (int k = 0; k < ND; k++) before[k] = s->v[DISCRETE[k]];
        m_initial(s);
        m_event(s);
        for (int k = 0; k < ND; k++) changed |= s->v[DISCRETE[k]] != before[k];
        if (!changed) break;
    }
    for (int k = 0; k < ND; k++) s->last[k] = s->v[DISCRETE[k]];
    s->initial = 0;
    s->dirty = CLEAN;
}

static int exit_initialization(Instance *I) {
    State *s = &I->s;
    s->failed = 0;
    solve_initial(I);
    for (int k = 0; k < NC; k++) s->held[k] = s->level[k];
    start_clocks(s);
    s->mode = RUNNING;
    if (HAS_EVENTS && event(I)) return FAILED;
    m_continuous(s);
    return check(I);
}

static void forget_preview(State *s) {
    if (!s->is_preview) return;
    for (int k = 0; k < NX; k++) s->v[STATE[k]] = s->kept[k];
    s->is_preview = 0;
}

/* The values just after the event that new inputs make: what a host reads before the next step. The
   event itself comes with that step; nothing that it needs changes here. */
static void preview(Instance *I) {
    State *s = &I->s, before;
    forget_preview(s);
    for (int k = 0; k < NX; k++) s->kept[k] = s->v[STATE[k]];
    before = *s;
    event(I);
    m_continuous(s);
    memcpy(before.v, s->v, sizeof before.v);
    *s = before;
    s->is_preview = 1;
}

/* Make all values consistent with what was set. */
static void refresh(Instance *I) {
    State *s = &I->s;
    if (!s->dirty) return;
    if (s->mode != RUNNING) {
        solve_initial(I);
        return;
    }
    if (s->dirty & PARAMETERS) m_calculated(s);
    if (HAS_EVENTS && (s->dirty & INPUTS) && !I->is_exchange) {
        preview(I);
    } else {
        m_continuous(s);
    }
    /* The next step must still see that there are new inputs. */
    s->seen |= s->dirty & INPUTS;
    s->dirty = CLEAN;
}
