/* The runtime of a compiled model: FMI 2.0 and 3.0 co-simulation over the generated part above.

   The generated part defines the sizes (NV slots, NX states, ND discrete slots, NC when-triggers,
   NCLK clocks, NTEV instants, NREL moving relations, NASSERT assertions), its tables, and the functions
   m_calculated, m_starts, m_initial, m_continuous, m_rates, m_event, m_relations, m_instants
   and m_assert.
   All values of an instance are in one plain struct, so that an FMU state is a copy of it. */

#define OK 0
#define DISCARD 2
#define FAILED 3

enum { SETUP, INITIALIZING, RUNNING };
enum { CLEAN = 0, STALE = 1, PARAMETERS = 2 };
/* What may be done with a slot. */
enum { TUNABLE, FIXED, INPUT, START, COMPUTED };

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
    char name[128];
    char text[512];
} Instance;

static void report(Instance *I, int status, const char *category, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(I->text, sizeof I->text, format, arguments);
    va_end(arguments);
    if (I->callbacks && I->callbacks->logger)
        I->callbacks->logger(I->callbacks->environment, I->name, status, category, "%s", I->text);
    if (I->log3) I->log3(I->environment, status, category, I->text);
}

/* ---- time */

static double slack(double t) { return 1e-10 * (1.0 + fabs(t)); }

static double clock_time(int k, long long n) {
    return CLOCK[k][2] / CLOCK[k][3] + (double)n * CLOCK[k][0] / CLOCK[k][1];
}

static double next_event(State *s) {
    double next = INFINITY, instant[NTEV + 1];
    m_instants(s, instant);
    for (int k = 0; k < NCLK; k++) {
        double t = clock_time(k, s->next[k]);
        if (t < next) next = t;
    }
    for (int k = 0; k < NTEV; k++)
        if (instant[k] > s->time + slack(s->time) && instant[k] < next) next = instant[k];
    return next;
}

/* ---- events */

/* Event iteration at the present time; clocks that are due tick once, in the first pass. */
static int event(Instance *I) {
    State *s = &I->s;
    for (int k = 0; k < NCLK; k++) {
        double t = clock_time(k, s->next[k]);
        s->tick[k] = t <= s->time + slack(t);
        if (s->tick[k]) s->next[k]++;
    }
    for (int pass = 0; pass < 64; pass++) {
        int changed = 0;
        for (int k = 0; k < ND; k++) s->pre[k] = s->v[DISCRETE[k]];
        s->reinit = 0;
        m_event(s);
        for (int k = 0; k < ND; k++) changed |= s->v[DISCRETE[k]] != s->pre[k];
        for (int k = 0; k < NC; k++) {
            changed |= s->level[k] != s->held[k];
            s->held[k] = s->level[k];
        }
        for (int k = 0; k < NCLK; k++) s->tick[k] = 0;
        if (!changed && !s->reinit) return OK;
    }
    report(I, FAILED, "logStatusError", "the events at t = %.12g do not settle in 64 passes", s->time);
    return FAILED;
}

static int check(Instance *I) {
    State *s = &I->s;
    if (s->failed) {
        report(I, FAILED, "logStatusError", "a system of equations has no solution at t = %.12g", s->time);
        return FAILED;
    }
    for (int k = 0; k < NASSERT; k++) {
        if (!m_assert(s, k)) continue;
        if (ASSERT_TERMINATES[k]) {
            s->ended = 1;
            report(I, OK, "logEvents", "terminated at t = %.12g: %s", s->time, ASSERT_TEXT[k]);
            continue;
        }
        report(I, FAILED, "logStatusError", "assertion failed at t = %.12g: %s", s->time, ASSERT_TEXT[k]);
        return FAILED;
    }
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
    s->initial = 0;
    s->dirty = CLEAN;
}

static int exit_initialization(Instance *I) {
    State *s = &I->s;
    s->failed = 0;
    solve_initial(I);
    for (int k = 0; k < NC; k++) s->held[k] = s->level[k];
    for (int k = 0; k < NCLK; k++) {
        double n = ceil((s->time - CLOCK[k][2] / CLOCK[k][3]) * CLOCK[k][1] / CLOCK[k][0] - 1e-9);
        s->next[k] = n > 0 ? (long long)n : 0;
    }
    s->mode = RUNNING;
    if (HAS_EVENTS && event(I)) return FAILED;
    m_continuous(s);
    return check(I);
}

static void refresh(Instance *I) {
    State *s = &I->s;
    if (!s->dirty) return;
    if (s->mode != RUNNING) {
        solve_initial(I);
        return;
    }
    if (s->dirty & PARAMETERS) m_calculated(s);
    m_continuous(s);
    s->dirty = CLEAN;
}

/* ---- integration */

static int relations_changed(State *s, const int *before) {
    int now[NREL + 1];
    m_relations(s, now);
    for (int k = 0; k < NREL; k++)
        if (now[k] != before[k]) return 1;
    return 0;
}

#if NX > 0
static void rates(State *s, double t, const double *x, double *dx) {
    s->time = t;
    for (int i = 0; i < NX; i++) s->v[STATE[i]] = x[i];
    m_rates(s);
    for (int i = 0; i < NX; i++) dx[i] = s->v[RATE[i]];
}

/* One step of Dormand and Prince's method of order 5(4) (J. Comp. Appl. Math. 6, 1980): the new states
   and the scaled norm of the error. */
static double advance(State *s, double t, const double *x, double h, double *next) {
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
    }
    for (int i = 0; i < NX; i++) {
        double sum = 0, scale;
        for (int stage = 0; stage < 7; stage++) sum += e[stage] * k[stage][i];
        next[i] = at[i];
        scale = s->atol + s->rtol * fmax(fabs(x[i]), fabs(next[i]));
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

/* Integrate from the present time to `limit` or to the first event; the time reached. */
static double integrate(Instance *I, double limit, int *crossed) {
    State *s = &I->s;
    double x[NX], next[NX], t = s->time, h = limit - t;
    int before[NREL + 1];
    *crossed = 0;
    for (int i = 0; i < NX; i++) x[i] = s->v[STATE[i]];
    m_rates(s);
    m_relations(s, before);
    for (int trial = 0;; trial++) {
        int is_last = s->step >= h * (1 - 1e-9);
        double size = is_last ? h : s->step;
        double error = advance(s, t, x, size, next);
        if (error <= 1.0) {
            double factor = error > 0 ? fmin(5.0, fmax(0.2, 0.9 * pow(error, -0.2))) : 5.0;
            if (!is_last || size * factor > s->step) s->step = size * factor;
            h = size;
            break;
        }
        s->step = size * (isfinite(error) ? fmax(0.1, 0.9 * pow(error, -0.2)) : 0.1);
        if (trial == 100 || s->step < 1e-15 * (1 + fabs(t))) {
            report(I, FAILED, "logStatusError", "the solver cannot go on at t = %.12g: step %.3g", t, s->step);
            s->failed = 1;
            place(s, t, x);
            return t;
        }
    }
    place(s, t + h, next);
    if (NREL > 0 && relations_changed(s, before)) {
        double low = 0, high = h;
        for (int k = 0; k < 60 && high - low > 1e-12 * (1 + fabs(t)); k++) {
            double middle = 0.5 * (low + high);
            advance(s, t, x, middle, next);
            place(s, t + middle, next);
            if (relations_changed(s, before)) high = middle; else low = middle;
        }
        advance(s, t, x, high, next);
        place(s, t + high, next);
        *crossed = 1;
        h = high;
    }
    return t + h;
}
#else
/* Without states only time moves. */
static double integrate(Instance *I, double limit, int *crossed) {
    State *s = &I->s;
    int before[NREL + 1];
    double low = s->time, high = limit;
    *crossed = 0;
    m_rates(s);
    m_relations(s, before);
    s->time = limit;
    m_rates(s);
    if (NREL == 0 || !relations_changed(s, before)) return limit;
    for (int k = 0; k < 60 && high - low > 1e-12 * (1 + fabs(low)); k++) {
        s->time = 0.5 * (low + high);
        m_rates(s);
        if (relations_changed(s, before)) high = s->time; else low = s->time;
    }
    s->time = high;
    m_rates(s);
    *crossed = 1;
    return high;
}
#endif

static int do_step(Instance *I, double start, double size) {
    State *s = &I->s;
    double end = start + size;
    if (s->ended) return DISCARD;
    s->time = start;
    if (s->dirty) {
        if (s->dirty & PARAMETERS) m_calculated(s);
        /* New inputs may be events. */
        if (HAS_EVENTS && event(I)) return FAILED;
        s->dirty = CLEAN;
    }
    if (s->step <= 0) s->step = size;
    if (NX > 0 || NREL > 0 || NCLK > 0 || NTEV > 0) {
        while (s->time < end - slack(end)) {
            double next = next_event(s), limit = next < end ? next : end;
            int crossed, due;
            if (limit < s->time) limit = s->time;
            s->time = integrate(I, limit, &crossed);
            if (s->failed) return FAILED;
            due = next <= s->time + slack(s->time);
            /* A deadline is reached, not nearly reached. */
            if (due && next > s->time) s->time = next;
            if ((crossed || due) && HAS_EVENTS && event(I)) return FAILED;
        }
    }
    s->time = end;
    if (NASSERT > 0 || s->failed) {
        m_continuous(s);
        if (check(I)) return FAILED;
        return s->ended ? DISCARD : OK;
    }
    /* Outputs are computed when somebody reads them. */
    s->dirty |= STALE;
    return OK;
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
        s->dirty |= kind == TUNABLE || kind == FIXED ? STALE | PARAMETERS : STALE;
    }
    return OK;
}

static void set_tolerance(State *s, int is_defined, double tolerance) {
    if (is_defined && tolerance > 0) {
        s->rtol = tolerance;
        s->atol = tolerance * 1e-2;
    }
}

#if defined _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define SELF Instance *I = (Instance *)c; if (!I) return FAILED
/* Functions of optional capabilities that the model description does not claim. */
#define UNSUPPORTED(NAME) EXPORT int NAME(void) { return FAILED; }
#define NOTHING(NAME) EXPORT int NAME(void *c) { return c ? OK : FAILED; }

/* ---- FMI states, the same for both versions */

static int state_get(Instance *I, void **state) {
    if (!*state) *state = malloc(sizeof(State));
    if (!*state) return FAILED;
    memcpy(*state, &I->s, sizeof(State));
    return OK;
}

typedef struct { char token[64]; State s; } Serialized;

static int state_write(const void *state, unsigned char *bytes, size_t size) {
    Serialized *out = (Serialized *)bytes;
    if (!state || size < sizeof(Serialized)) return FAILED;
    memset(out->token, 0, sizeof out->token);
    strncpy(out->token, MODEL_TOKEN, sizeof out->token - 1);
    memcpy(&out->s, state, sizeof(State));
    return OK;
}

static int state_read(const unsigned char *bytes, size_t size, void **state) {
    const Serialized *in = (const Serialized *)bytes;
    if (size != sizeof(Serialized) || strncmp(in->token, MODEL_TOKEN, sizeof in->token - 1)) return FAILED;
    if (!*state) *state = malloc(sizeof(State));
    if (!*state) return FAILED;
    memcpy(*state, &in->s, sizeof(State));
    return OK;
}

/* ---- FMI 2.0 */

EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char *fmi2GetVersion(void) { return "2.0"; }
EXPORT void *fmi2Instantiate(const char *name, int type, const char *token, const char *resources,
                             const Callbacks2 *callbacks, int visible, int logging) {
    Instance *I = type == 1 ? instantiate(name, token) : NULL;
    (void)resources; (void)visible; (void)logging;
    if (I) I->callbacks = callbacks;
    return I;
}
EXPORT void fmi2FreeInstance(void *c) { free(c); }
EXPORT int fmi2SetDebugLogging(void *c, int on, size_t n, const char *const categories[]) {
    (void)on; (void)n; (void)categories;
    return c ? OK : FAILED;
}
EXPORT int fmi2SetupExperiment(void *c, int has_tolerance, double tolerance, double start, int has_stop, double stop) {
    SELF;
    (void)has_stop; (void)stop;
    I->s.time = start;
    set_tolerance(&I->s, has_tolerance, tolerance);
    return OK;
}
EXPORT int fmi2EnterInitializationMode(void *c) { SELF; I->s.mode = INITIALIZING; I->s.dirty |= STALE | PARAMETERS; return OK; }
EXPORT int fmi2ExitInitializationMode(void *c) { SELF; return exit_initialization(I); }
NOTHING(fmi2Terminate)
EXPORT int fmi2Reset(void *c) { SELF; reset(I); return OK; }
#define GET2(NAME, TYPE, CONVERTED) \
    EXPORT int NAME(void *c, const unsigned vr[], size_t n, TYPE values[]) { \
        SELF; \
        refresh(I); \
        for (size_t k = 0; k < n; k++) { \
            double x; \
            if (vr[k] >= NV) return FAILED; \
            x = I->s.v[vr[k]]; \
            values[k] = CONVERTED; \
        } \
        return OK; \
    }
#define SET2(NAME, TYPE) \
    EXPORT int NAME(void *c, const unsigned vr[], size_t n, const TYPE values[]) { \
        SELF; \
        for (size_t k = 0; k < n; k++) \
            if (set_slot(I, vr[k], (double)values[k])) return FAILED; \
        return OK; \
    }
GET2(fmi2GetReal, double, x)
GET2(fmi2GetInteger, int, (int)lround(x))
GET2(fmi2GetBoolean, int, x != 0)
SET2(fmi2SetReal, double)
SET2(fmi2SetInteger, int)
SET2(fmi2SetBoolean, int)
UNSUPPORTED(fmi2GetString)
UNSUPPORTED(fmi2SetString)
EXPORT int fmi2GetFMUstate(void *c, void **state) { SELF; return state_get(I, state); }
EXPORT int fmi2SetFMUstate(void *c, void *state) { SELF; memcpy(&I->s, state, sizeof(State)); return OK; }
EXPORT int fmi2FreeFMUstate(void *c, void **state) { (void)c; free(*state); *state = NULL; return OK; }
EXPORT int fmi2SerializedFMUstateSize(void *c, void *state, size_t *size) { (void)c; (void)state; *size = sizeof(Serialized); return OK; }
EXPORT int fmi2SerializeFMUstate(void *c, void *state, unsigned char bytes[], size_t size) { (void)c; return state_write(state, bytes, size); }
EXPORT int fmi2DeSerializeFMUstate(void *c, const unsigned char bytes[], size_t size, void **state) { (void)c; return state_read(bytes, size, state); }
UNSUPPORTED(fmi2GetDirectionalDerivative)
UNSUPPORTED(fmi2SetRealInputDerivatives)
UNSUPPORTED(fmi2GetRealOutputDerivatives)
EXPORT int fmi2DoStep(void *c, double time, double size, int keep) { SELF; (void)keep; return do_step(I, time, size); }
UNSUPPORTED(fmi2CancelStep)
EXPORT int fmi2GetStatus(void *c, int kind, int *value) { (void)c; (void)kind; (void)value; return DISCARD; }
EXPORT int fmi2GetRealStatus(void *c, int kind, double *value) {
    SELF;
    if (kind != 2) return DISCARD;
    *value = I->s.time;
    return OK;
}
EXPORT int fmi2GetIntegerStatus(void *c, int kind, int *value) { (void)c; (void)kind; (void)value; return DISCARD; }
EXPORT int fmi2GetBooleanStatus(void *c, int kind, int *value) {
    SELF;
    if (kind != 3) return DISCARD;
    *value = I->s.ended;
    return OK;
}
EXPORT int fmi2GetStringStatus(void *c, int kind, const char **value) { (void)c; (void)kind; (void)value; return DISCARD; }

/* ---- FMI 3.0 */

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }
EXPORT int fmi3SetDebugLogging(void *c, bool on, size_t n, const char *const categories[]) {
    (void)on; (void)n; (void)categories;
    return c ? OK : FAILED;
}
EXPORT void *fmi3InstantiateModelExchange(void) { return NULL; }
EXPORT void *fmi3InstantiateScheduledExecution(void) { return NULL; }
EXPORT void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, bool visible,
                                         bool logging, bool event_mode, bool early_return, const unsigned required[],
                                         size_t n, void *environment, Log3 log, void *intermediate) {
    Instance *I = instantiate(name, token);
    (void)resources; (void)visible; (void)logging; (void)event_mode; (void)early_return; (void)required; (void)n;
    (void)intermediate;
    if (I) {
        I->log3 = log;
        I->environment = environment;
    }
    return I;
}
EXPORT void fmi3FreeInstance(void *c) { free(c); }
EXPORT int fmi3EnterInitializationMode(void *c, bool has_tolerance, double tolerance, double start, bool has_stop, double stop) {
    SELF;
    (void)has_stop; (void)stop;
    I->s.time = start;
    set_tolerance(&I->s, has_tolerance, tolerance);
    I->s.mode = INITIALIZING;
    I->s.dirty |= STALE | PARAMETERS;
    return OK;
}
EXPORT int fmi3ExitInitializationMode(void *c) { SELF; return exit_initialization(I); }
NOTHING(fmi3EnterEventMode)
NOTHING(fmi3EnterStepMode)
NOTHING(fmi3Terminate)
EXPORT int fmi3Reset(void *c) { SELF; reset(I); return OK; }
/* Value reference 0 is time, k is variable k − 1. */
#define GET3(NAME, TYPE, CONVERTED) \
    EXPORT int NAME(void *c, const unsigned vr[], size_t n, TYPE values[], size_t size) { \
        size_t at = 0; \
        SELF; \
        refresh(I); \
        for (size_t k = 0; k < n; k++) { \
            int count = vr[k] == 0 ? 1 : vr[k] <= NVARS ? VARIABLE[vr[k] - 1][1] : -1; \
            if (count < 0 || at + count > size) return FAILED; \
            for (int j = 0; j < count; j++) { \
                double x = vr[k] == 0 ? I->s.time : I->s.v[VARIABLE[vr[k] - 1][0] + j]; \
                values[at++] = CONVERTED; \
            } \
        } \
        return OK; \
    }
#define SET3(NAME, TYPE) \
    EXPORT int NAME(void *c, const unsigned vr[], size_t n, const TYPE values[], size_t size) { \
        size_t at = 0; \
        SELF; \
        for (size_t k = 0; k < n; k++) { \
            int count = vr[k] > 0 && vr[k] <= NVARS ? VARIABLE[vr[k] - 1][1] : -1; \
            if (count < 0 || at + count > size) return FAILED; \
            for (int j = 0; j < count; j++) \
                if (set_slot(I, VARIABLE[vr[k] - 1][0] + j, (double)values[at++])) return FAILED; \
        } \
        return OK; \
    }
GET3(fmi3GetFloat64, double, x)
GET3(fmi3GetInt32, int32_t, (int32_t)lround(x))
GET3(fmi3GetInt64, int64_t, (int64_t)llround(x))
GET3(fmi3GetBoolean, bool, x != 0)
SET3(fmi3SetFloat64, double)
SET3(fmi3SetInt32, int32_t)
SET3(fmi3SetInt64, int64_t)
SET3(fmi3SetBoolean, bool)
UNSUPPORTED(fmi3GetFloat32) UNSUPPORTED(fmi3SetFloat32) UNSUPPORTED(fmi3GetInt8) UNSUPPORTED(fmi3SetInt8)
UNSUPPORTED(fmi3GetUInt8) UNSUPPORTED(fmi3SetUInt8) UNSUPPORTED(fmi3GetInt16) UNSUPPORTED(fmi3SetInt16)
UNSUPPORTED(fmi3GetUInt16) UNSUPPORTED(fmi3SetUInt16) UNSUPPORTED(fmi3GetUInt32) UNSUPPORTED(fmi3SetUInt32)
UNSUPPORTED(fmi3GetUInt64) UNSUPPORTED(fmi3SetUInt64) UNSUPPORTED(fmi3GetString) UNSUPPORTED(fmi3SetString)
UNSUPPORTED(fmi3GetBinary) UNSUPPORTED(fmi3SetBinary) UNSUPPORTED(fmi3GetClock) UNSUPPORTED(fmi3SetClock)
UNSUPPORTED(fmi3GetNumberOfVariableDependencies) UNSUPPORTED(fmi3GetVariableDependencies)
EXPORT int fmi3GetFMUState(void *c, void **state) { SELF; return state_get(I, state); }
EXPORT int fmi3SetFMUState(void *c, void *state) { SELF; memcpy(&I->s, state, sizeof(State)); return OK; }
EXPORT int fmi3FreeFMUState(void *c, void **state) { (void)c; free(*state); *state = NULL; return OK; }
EXPORT int fmi3SerializedFMUStateSize(void *c, void *state, size_t *size) { (void)c; (void)state; *size = sizeof(Serialized); return OK; }
EXPORT int fmi3SerializeFMUState(void *c, void *state, unsigned char bytes[], size_t size) { (void)c; return state_write(state, bytes, size); }
EXPORT int fmi3DeserializeFMUState(void *c, const unsigned char bytes[], size_t size, void **state) { (void)c; return state_read(bytes, size, state); }
UNSUPPORTED(fmi3GetDirectionalDerivative) UNSUPPORTED(fmi3GetAdjointDerivative)
UNSUPPORTED(fmi3EnterConfigurationMode) UNSUPPORTED(fmi3ExitConfigurationMode)
UNSUPPORTED(fmi3GetIntervalDecimal) UNSUPPORTED(fmi3GetIntervalFraction)
UNSUPPORTED(fmi3GetShiftDecimal) UNSUPPORTED(fmi3GetShiftFraction)
UNSUPPORTED(fmi3SetIntervalDecimal) UNSUPPORTED(fmi3SetIntervalFraction)
UNSUPPORTED(fmi3SetShiftDecimal) UNSUPPORTED(fmi3SetShiftFraction)
UNSUPPORTED(fmi3EvaluateDiscreteStates) UNSUPPORTED(fmi3UpdateDiscreteStates)
UNSUPPORTED(fmi3EnterContinuousTimeMode) UNSUPPORTED(fmi3CompletedIntegratorStep)
UNSUPPORTED(fmi3SetTime) UNSUPPORTED(fmi3SetContinuousStates) UNSUPPORTED(fmi3GetContinuousStateDerivatives)
UNSUPPORTED(fmi3GetEventIndicators) UNSUPPORTED(fmi3GetContinuousStates)
UNSUPPORTED(fmi3GetNominalsOfContinuousStates) UNSUPPORTED(fmi3GetNumberOfEventIndicators)
UNSUPPORTED(fmi3GetNumberOfContinuousStates) UNSUPPORTED(fmi3GetOutputDerivatives)
UNSUPPORTED(fmi3ActivateModelPartition)
EXPORT int fmi3DoStep(void *c, double time, double size, bool keep, bool *event_needed, bool *terminate,
                      bool *early_return, double *last) {
    int status;
    SELF;
    (void)keep;
    status = do_step(I, time, size);
    *event_needed = false;
    *terminate = I->s.ended != 0;
    *early_return = false;
    *last = I->s.time;
    return status == DISCARD && I->s.ended ? OK : status;
}
