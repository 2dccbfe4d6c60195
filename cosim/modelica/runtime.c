/* The runtime of a compiled model, the part that both FMI versions share: events, initialization,
   integration, values.

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

/* ---- integration */

#if NREL > 0
static int relations_changed(State *s, const int *before) {
    int now[NREL];
    m_relations(s, now);
    return memcmp(now, before, sizeof now) != 0;
}

/* Events that come ever closer (a Zeno sequence), or at once again (chattering), never end: a relation
   that changed ten times running within a ten-millionth of a second each. */
static int accumulates(Instance *I, const int *before) {
    State *s = &I->s;
    int now[NREL];
    m_relations(s, now);
    for (int k = 0; k < NREL; k++) {
        if (now[k] == before[k]) continue;
        s->crowd[k] = s->time - s->crossed[k] < 1e-7 * (1.0 + fabs(s->time)) ? s->crowd[k] + 1 : 0;
        s->crossed[k] = s->time;
        if (s->crowd[k] >= 10) {
            report(I, FAILED, "logStatusError",
                   "events accumulate at t = %.12g: %s changes again and again (chattering, or a bounce that never "
                   "ends); use a hysteresis, or stop at a smallest value",
                   s->time, RELATION_TEXT[k]);
            s->failed = 1;
            return 1;
        }
    }
    return 0;
}
#endif

#if NX > 0
static void rates(State *s, double t, const double *x, double *dx) {
    s->time = t;
    for (int i = 0; i < NX; i++) s->v[STATE[i]] = x[i];
    m_rates(s);
    for (int i = 0; i < NX; i++) dx[i] = s->v[RATE[i]];
}

/* One step of Dormand and Prince's method of order 5(4) (J. Comp. Appl. Math. 6, 1980): the new states
   and the scaled norm of the error. Where `before` is given, `touched` says whether a relation has another
   value at an inner stage: it may change twice within the step. */
static double advance(State *s, double t, const double *x, double h, double *next, const int *before, int *touched) {
    static const double c[7] = {0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1, 1};
    static const double a[7][6] = {
        {0},
        {1.0 / 5},
        {3.0 / 40, 9.0 / 40},
        {44.0 / 45, -56.0 / 15, 32.0 / 9},
        {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
        {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
        {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}};
    static const double e[7] = {71.0 / 57600, 0, -71.0 / 16695, 71.0 / 1920, -17253.0 / 339200, 22.0 / 525, -1.0 / 40};
    double k[7][NX], at[NX], error = 0;
    for (int stage = 0; stage < 7; stage++) {
        for (int i = 0; i < NX; i++) {
            double sum = 0;
            for (int j = 0; j < stage; j++) sum += a[stage][j] * k[j][i];
            at[i] = x[i] + h * sum;
        }
        rates(s, t + c[stage] * h, at, k[stage]);
#if NREL > 0
        if (before && (stage == 2 || stage == 3)) *touched |= relations_changed(s, before);
#endif
    }
    (void)before; (void)touched;
    for (int i = 0; i < NX; i++) {
        double sum = 0, scale;
        for (int stage = 0; stage < 7; stage++) sum += e[stage] * k[stage][i];
        next[i] = at[i];
        scale = s->atol * NOMINAL[i] + s->rtol * fmax(fabs(x[i]), fabs(next[i]));
        error = fmax(error, fabs(h * sum) / scale);
        if (!isfinite(next[i])) error = INFINITY;
    }
    return error;
}

static void place(State *s, double t, const double *x) {
    s->time = t;
    for (int i = 0; i < NX; i++) s->v[STATE[i]] = x[i];
    m_rates(s);
}

/* A step of the solver's own size from `t`, at most to `limit`: the new states and the size, 0 if it failed. */
static double accepted(Instance *I, double t, const double *x, double limit, double *next, const int *before) {
    State *s = &I->s;
    double h = limit - t;
    for (int trial = 0;; trial++) {
        int is_last = s->step >= h * (1 - 1e-9), touched = 0;
        double size = is_last ? h : s->step;
        double error = advance(s, t, x, size, next, before, &touched);
#if NREL > 0
        if (error <= 1.0 && touched && trial < 10) {
            /* Unless the end shows the change too, look closer. */
            place(s, t + size, next);
            if (!relations_changed(s, before)) {
                s->step = 0.5 * size;
                continue;
            }
        }
#endif
        if (error <= 1.0) {
            double factor = error > 0 ? fmin(5.0, fmax(0.2, 0.9 * pow(error, -0.2))) : 5.0;
            if (!is_last || size * factor > s->step) s->step = size * factor;
            return size;
        }
        s->step = size * (isfinite(error) ? fmax(0.1, 0.9 * pow(error, -0.2)) : 0.1);
        if (trial == 100 || s->step < 1e-15 * (1 + fabs(t))) {
            report(I, FAILED, "logStatusError", "the solver cannot go on at t = %.12g: step %.3g", t, s->step);
            s->failed = 1;
            place(s, t, x);
            return 0;
        }
    }
}

/* Integrate from the present time to `limit` or to the first event; the time reached. */
static double integrate(Instance *I, double limit, int *crossed) {
    State *s = &I->s;
    double x[NX], next[NX], t = s->time, h;
    *crossed = 0;
    for (int i = 0; i < NX; i++) x[i] = s->v[STATE[i]];
#if NREL > 0
    int before[NREL];
    m_rates(s);
    m_relations(s, before);
    h = accepted(I, t, x, limit, next, before);
#else
    h = accepted(I, t, x, limit, next, NULL);
#endif
    if (s->failed) return t;
    if (h == limit - t) {
        place(s, limit, next);
    } else {
        place(s, t + h, next);
    }
#if NREL > 0
    if (relations_changed(s, before)) {
        double low = 0, high = h;
        for (int k = 0; k < 60 && high - low > 1e-12 * (1 + fabs(t)); k++) {
            double middle = 0.5 * (low + high);
            advance(s, t, x, middle, next, NULL, NULL);
            place(s, t + middle, next);
            if (relations_changed(s, before)) high = middle; else low = middle;
        }
        if (high < h) {
            advance(s, t, x, high, next, NULL, NULL);
            place(s, t + high, next);
        } else {
            advance(s, t, x, h, next, NULL, NULL);
            place(s, h == limit - t ? limit : t + h, next);
        }
        *crossed = 1;
        accumulates(I, before);
    }
#endif
    return s->time;
}
#else
/* Without states only time moves. */
static double integrate(Instance *I, double limit, int *crossed) {
    State *s = &I->s;
    *crossed = 0;
#if NREL > 0
    int before[NREL];
    double low = s->time, high = limit;
    m_rates(s);
    m_relations(s, before);
    s->time = limit;
    m_rates(s);
    if (!relations_changed(s, before)) return limit;
    for (int k = 0; k < 60 && high - low > 1e-12 * (1 + fabs(low)); k++) {
        s->time = 0.5 * (low + high);
        m_rates(s);
        if (relations_changed(s, before)) high = s->time; else low = s->time;
    }
    s->time = high;
    m_rates(s);
    *crossed = 1;
    accumulates(I, before);
    return high;
#else
    s->time = limit;
    return limit;
#endif
}
#endif

/* Events at the present time; a strict inequality of time holds just after its instant. */
static int events_now(Instance *I, int at_instant) {
    State *s = &I->s;
    if (event(I)) return FAILED;
    if (STRICT_TIME && at_instant) {
        s->time = nextafter(s->time, INFINITY);
        return event(I);
    }
    return OK;
}

/* From the present time to `end`. With `stop` set, the first event is left to the host, and `stop` tells
   whether there is one. */
static int run_to(Instance *I, double end, int *stop) {
    State *s = &I->s;
    int may_stop = stop && *stop;
    if (stop) *stop = 0;
    while (s->time < end - slack(end)) {
        double next = next_event(s), limit = next < end ? next : end;
        int crossed, due;
        if (limit < s->time) limit = s->time;
        integrate(I, limit, &crossed);
        if (s->failed) return FAILED;
        due = next <= s->time + slack(s->time);
        /* A deadline is reached, not nearly reached. */
        if (due && next > s->time) s->time = next;
        if (!(crossed || due) || !HAS_EVENTS) continue;
        if (may_stop && (I->may_return_early || s->time >= end - slack(end))) {
            *stop = 1;
            return OK;
        }
        if (events_now(I, due)) return FAILED;
        /* Small steps at first, which grow: a large one might step over two changes, as of a short bounce. */
        if (crossed) s->step = fmax(1e-3 * s->step, 1e-10 * (1 + fabs(s->time)));
    }
    return OK;
}

static int do_step(Instance *I, double start, double size, int *stop) {
    State *s = &I->s;
    double end = start + size;
    if (s->ended) return DISCARD;
    if (s->failed || s->mode != RUNNING) {
        report(I, FAILED, "logStatusError", "a step is not possible %s",
               s->failed ? "after an error; reset, or restore a state" : "before the initialization");
        return FAILED;
    }
    /* The host's sum and the time reached are the same up to rounding: never go back behind a deadline. */
    if (!(fabs(s->time - start) <= slack(start) && s->time > start)) s->time = start;
    if (s->dirty || s->seen) {
        forget_preview(s);
        if (s->dirty & PARAMETERS) m_calculated(s);
        /* New inputs may be events. */
        if (HAS_EVENTS && event(I)) return FAILED;
        s->dirty = CLEAN;
        s->seen = 0;
    }
    if (s->step <= 0) s->step = size;
    if (NX > 0 || NREL > 0 || NCLK > 0 || NTEV > 0) {
        int status = run_to(I, end, stop);
        if (status || (stop && *stop)) {
            s->dirty |= STALE;
            return status;
        }
    }
    if (s->time < end) s->time = end;
    if (NASSERT > 0 || s->failed) {
        m_continuous(s);
        if (check(I)) return FAILED;
        return s->ended ? DISCARD : OK;
    }
    /* Outputs are computed when somebody reads them. */
    s->dirty |= STALE;
    return OK;
}

/* The event iteration that a host asks for, in model exchange and in event mode. */
static int update_discrete(Instance *I, int *states_changed, double *next) {
    State *s = &I->s;
    double before[NX + 1];
    for (int k = 0; k < NX; k++) before[k] = s->v[STATE[k]];
    forget_preview(s);
    if (s->dirty & PARAMETERS) m_calculated(s);
    if (HAS_EVENTS) {
        double t = s->time;
        if (events_now(I, 1)) return FAILED;
        s->time = t;
    }
    m_continuous(s);
    s->dirty = CLEAN;
    s->seen = 0;
    *states_changed = 0;
    for (int k = 0; k < NX; k++) *states_changed |= before[k] != s->v[STATE[k]];
    *next = next_event(s);
    return check(I);
}

/* ---- instances and values */

static void reset(Instance *I) {
    State *s = &I->s;
    memset(s, 0, sizeof *s);
    s->rtol = 1e-6;
    s->atol = 1e-8;
    memcpy(s->v, START_VALUE, sizeof(double) * NV);
    memcpy(s->start, START_VALUE, sizeof(double) * NV);
    s->dirty = STALE | PARAMETERS;
}

static Instance *instantiate(const char *name, const char *token) {
    Instance *I;
    if (!token || strcmp(token, MODEL_TOKEN)) return NULL;
    I = calloc(1, sizeof *I);
    if (!I) return NULL;
    snprintf(I->name, sizeof I->name, "%s", name ? name : MODEL_NAME);
    reset(I);
    return I;
}

static int set_slot(Instance *I, unsigned slot, double value) {
    State *s = &I->s;
    int kind = slot < NV ? SLOT_KIND[slot] : COMPUTED;
    if (kind == BAKED) {
        /* The period of a clock: the front end built it in. */
        if (fabs(value - START_VALUE[slot]) <= 1e-12 * fabs(value)) return OK;
        report(I, FAILED, "logStatusError", "a sample period is built in as %.12g: change it in the source",
               START_VALUE[slot]);
        return FAILED;
    }
    if (kind == COMPUTED || (s->mode == RUNNING && kind != TUNABLE && kind != INPUT)) {
        report(I, FAILED, "logStatusError", "the variable in slot %u cannot be set%s", slot,
               kind == COMPUTED ? "" : " any more");
        return FAILED;
    }
    if (kind == START) {
        s->start[slot] = value;
        s->given[slot] = 1;
    }
    if (s->v[slot] != value || kind == START) {
        s->v[slot] = value;
        s->dirty |= kind == TUNABLE || kind == FIXED ? STALE | PARAMETERS | INPUTS : STALE | INPUTS;
    }
    return OK;
}

/* A text of the host is kept in the state; its value is a number beyond those of the literals. */
static int set_text(Instance *I, unsigned slot, const char *text) {
#if NTEXT > 0
    int k = slot < NV ? TEXT_OF_SLOT[slot] : -1;
    if (k < 0) return FAILED;
    if (strlen(text) >= sizeof I->s.text[k]) {
        report(I, FAILED, "logStatusError", "a text of more than %d bytes does not fit", (int)sizeof I->s.text[k] - 1);
        return FAILED;
    }
    memset(I->s.text[k], 0, sizeof I->s.text[k]);
    strcpy(I->s.text[k], text);
    I->s.dirty |= STALE | INPUTS;
    return set_slot(I, slot, NLITERAL + k);
#else
    (void)text;
    report(I, FAILED, "logStatusError", "the variable in slot %u is no text", slot);
    return FAILED;
#endif
}

static void set_tolerance(State *s, int is_defined, double tolerance) {
    if (is_defined && tolerance > 0) {
        s->rtol = tolerance;
        s->atol = tolerance * 1e-2;
    }
}

static int is_known(unsigned slot) { return slot < NV && SLOT_SEED[slot]; }

/* ---- what both versions export under two names */

#if defined _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define SELF Instance *I = (Instance *)c; if (!I) return FAILED
/* Functions of optional capabilities that the model description does not claim. */
#define NOT_HERE(NAME, ...) EXPORT int NAME(__VA_ARGS__) { return FAILED; }
#if defined __GNUC__
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

static int state_get(Instance *I, void **state) {
    if (!*state) *state = malloc(sizeof(State));
    if (!*state) return FAILED;
    memcpy(*state, &I->s, sizeof(State));
    return OK;
}

typedef struct { char token[64]; State s; } Serialized;

static int state_write(const void *state, unsigned char *bytes, size_t size) {
    char token[64] = {0};
    if (!state || size < sizeof(Serialized)) return FAILED;
    memcpy(token, MODEL_TOKEN, sizeof MODEL_TOKEN);
    memset(bytes, 0, sizeof(Serialized));
    memcpy(bytes, token, sizeof token);
    memcpy(bytes + offsetof(Serialized, s), state, sizeof(State));
    return OK;
}

static int state_read(const unsigned char *bytes, size_t size, void **state) {
    if (size != sizeof(Serialized) || memcmp(bytes, MODEL_TOKEN, sizeof MODEL_TOKEN)) return FAILED;
    if (!*state) *state = malloc(sizeof(State));
    if (!*state) return FAILED;
    memcpy(*state, bytes + offsetof(Serialized, s), sizeof(State));
    return OK;
}

static int set_states(Instance *I, const double x[], size_t n) {
    if (n != NX) return FAILED;
    for (size_t k = 0; k < n; k++) I->s.v[STATE[k]] = x[k];
    I->s.dirty |= STALE;
    return OK;
}

static int get_states(Instance *I, double x[], size_t n) {
    if (n != NX) return FAILED;
    for (size_t k = 0; k < n; k++) x[k] = I->s.v[STATE[k]];
    return OK;
}

static int get_rates(Instance *I, double dx[], size_t n) {
    if (n != NX) return FAILED;
    refresh(I);
    for (size_t k = 0; k < n; k++) dx[k] = I->s.v[RATE[k]];
    return OK;
}

static int get_nominals(double x[], size_t n) {
    if (n != NX) return FAILED;
    for (size_t k = 0; k < n; k++) x[k] = NOMINAL[k];
    return OK;
}

static int get_roots(Instance *I, double z[], size_t n) {
    if (n != NROOT) return FAILED;
    refresh(I);
    m_roots(&I->s, z);
    return OK;
}

/* Both versions begin and end a step of the host's integrator alike. */
static int completed_step(Instance *I) {
    refresh(I);
    return check(I);
}
