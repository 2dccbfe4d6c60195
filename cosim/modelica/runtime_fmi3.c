
/* ---- FMI 3.0: value reference 0 is time, k is variable k − 1 with all its elements */

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }
EXPORT int fmi3SetDebugLogging(void *c, bool on, size_t n, const char *const categories[]) {
    (void)on; (void)n; (void)categories;
    return c ? OK : FAILED;
}
static Instance *instantiate3(const char *name, const char *token, void *environment, Log3 log) {
    Instance *I = instantiate(name, token);
    if (!I) {
        if (log) log(environment, FAILED, "logStatusError", "the instantiation token is not that of " MODEL_NAME);
        return NULL;
    }
    I->log3 = log;
    I->environment = environment;
    return I;
}
EXPORT void *fmi3InstantiateModelExchange(const char *name, const char *token, const char *resources, bool visible,
                                          bool logging, void *environment, Log3 log) {
    Instance *I = instantiate3(name, token, environment, log);
    (void)resources; (void)visible; (void)logging;
    if (I) I->is_exchange = 1;
    return I;
}
EXPORT void *fmi3InstantiateScheduledExecution(const char *name, const char *token, const char *resources, bool visible,
                                               bool logging, void *environment, Log3 log, void *clock, void *lock, void *unlock) {
    (void)name; (void)token; (void)resources; (void)visible; (void)logging; (void)clock; (void)lock; (void)unlock;
    if (log) log(environment, FAILED, "logStatusError", "there is no scheduled execution here");
    return NULL;
}
EXPORT void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, bool visible,
                                         bool logging, bool event_mode, bool early_return, const unsigned required[],
                                         size_t n, void *environment, Log3 log, void *intermediate) {
    Instance *I = instantiate3(name, token, environment, log);
    (void)resources; (void)visible; (void)logging; (void)required; (void)n; (void)intermediate;
    if (I) {
        I->has_event_mode = event_mode;
        I->may_return_early = early_return;
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
EXPORT int fmi3EnterEventMode(void *c) { return c ? OK : FAILED; }
EXPORT int fmi3EnterStepMode(void *c) { return c ? OK : FAILED; }
EXPORT int fmi3Terminate(void *c) { return c ? OK : FAILED; }
EXPORT int fmi3Reset(void *c) { SELF; reset(I); return OK; }
#define COUNT(VR) ((VR) == 0 ? 1 : (VR) <= NVARS ? VARIABLE[(VR) - 1][1] : -1)
/* Element j of a variable; the event indicators are the one behind the last. */
static double element(Instance *I, unsigned vr, int j) {
    if (vr == 0) return I->s.time;
    return I->s.v[VARIABLE[vr - 1][0] + j];
}
static int get_indicators(Instance *I, double *values, size_t *at, size_t size) {
    double z[NROOT + 1];
    if (NROOT == 0 || *at + NROOT > size) return FAILED;
    m_roots(&I->s, z);
    for (int k = 0; k < NROOT; k++) values[(*at)++] = z[k];
    return OK;
}
#define GET3(NAME, TYPE, CONVERTED) \
    EXPORT int NAME(void *c, const unsigned vr[], size_t n, TYPE values[], size_t size) { \
        size_t at = 0; \
        SELF; \
        refresh(I); \
        for (size_t k = 0; k < n; k++) { \
            int count = COUNT(vr[k]); \
            if (count < 0 || at + (size_t)count > size) return FAILED; \
            for (int j = 0; j < count; j++) { \
                double x = element(I, vr[k], j); \
                values[at++] = CONVERTED; \
            } \
        } \
        return at == size ? OK : FAILED; \
    }
#define SET3(NAME, TYPE, SET) \
    EXPORT int NAME(void *c, const unsigned vr[], size_t n, const TYPE values[], size_t size) { \
        size_t at = 0; \
        SELF; \
        for (size_t k = 0; k < n; k++) { \
            int count = vr[k] > 0 ? COUNT(vr[k]) : -1; \
            if (count < 0 || at + (size_t)count > size) return FAILED; \
            for (int j = 0; j < count; j++) { \
                TYPE x = values[at++]; \
                if (SET) return FAILED; \
            } \
        } \
        return at == size ? OK : FAILED; \
    }
#define SLOT ((unsigned)(VARIABLE[vr[k] - 1][0] + j))
typedef const char *Text;
EXPORT int fmi3GetFloat64(void *c, const unsigned vr[], size_t n, double values[], size_t size) {
    size_t at = 0;
    SELF;
    refresh(I);
    for (size_t k = 0; k < n; k++) {
        int count = COUNT(vr[k]);
        if (vr[k] == NVARS + 1) {
            if (get_indicators(I, values, &at, size)) return FAILED;
            continue;
        }
        if (count < 0 || at + (size_t)count > size) return FAILED;
        for (int j = 0; j < count; j++) values[at++] = element(I, vr[k], j);
    }
    return at == size ? OK : FAILED;
}
GET3(fmi3GetInt32, int32_t, (int32_t)lround(x))
GET3(fmi3GetInt64, int64_t, (int64_t)llround(x))
GET3(fmi3GetBoolean, bool, x != 0)
GET3(fmi3GetString, Text, rt_text(&I->s, x))
SET3(fmi3SetFloat64, double, set_slot(I, SLOT, x))
SET3(fmi3SetInt32, int32_t, set_slot(I, SLOT, (double)x))
SET3(fmi3SetInt64, int64_t, set_slot(I, SLOT, (double)x))
SET3(fmi3SetBoolean, bool, set_slot(I, SLOT, (double)x))
SET3(fmi3SetString, Text, set_text(I, SLOT, x))
/* No variable has one of these types. */
#define TYPE_NOT_HERE(NAME, TYPE) \
    NOT_HERE(fmi3Get##NAME, void *c, const unsigned *vr, size_t n, TYPE *values, size_t size) \
    NOT_HERE(fmi3Set##NAME, void *c, const unsigned *vr, size_t n, const TYPE *values, size_t size)
TYPE_NOT_HERE(Float32, float)
TYPE_NOT_HERE(Int8, int8_t)
TYPE_NOT_HERE(UInt8, uint8_t)
TYPE_NOT_HERE(Int16, int16_t)
TYPE_NOT_HERE(UInt16, uint16_t)
TYPE_NOT_HERE(UInt32, uint32_t)
TYPE_NOT_HERE(UInt64, uint64_t)
NOT_HERE(fmi3GetBinary, void *c, const unsigned *vr, size_t n, size_t *sizes, const uint8_t **values, size_t size)
NOT_HERE(fmi3SetBinary, void *c, const unsigned *vr, size_t n, const size_t *sizes, const uint8_t *const *values, size_t size)
NOT_HERE(fmi3GetClock, void *c, const unsigned *vr, size_t n, bool *values)
NOT_HERE(fmi3SetClock, void *c, const unsigned *vr, size_t n, const bool *values)
NOT_HERE(fmi3GetNumberOfVariableDependencies, void *c, unsigned vr, size_t *n)
NOT_HERE(fmi3GetVariableDependencies, void *c, unsigned vr, size_t *at, unsigned *on, size_t *on_at, int *kinds, size_t n)
EXPORT int fmi3GetFMUState(void *c, void **state) { SELF; return state_get(I, state); }
EXPORT int fmi3SetFMUState(void *c, void *state) { SELF; memcpy(&I->s, state, sizeof(State)); return OK; }
EXPORT int fmi3FreeFMUState(void *c, void **state) { (void)c; free(*state); *state = NULL; return OK; }
EXPORT int fmi3SerializedFMUStateSize(void *c, void *state, size_t *size) {
    (void)c; (void)state;
    *size = sizeof(Serialized);
    return OK;
}
EXPORT int fmi3SerializeFMUState(void *c, void *state, unsigned char bytes[], size_t size) {
    (void)c;
    return state_write(state, bytes, size);
}
EXPORT int fmi3DeserializeFMUState(void *c, const unsigned char bytes[], size_t size, void **state) {
    (void)c;
    return state_read(bytes, size, state);
}
static int add_seeds(const unsigned vr[], size_t n, const double seed[], size_t size, double *d) {
    size_t at = 0;
    for (size_t k = 0; k < n; k++) {
        if (vr[k] == 0 || vr[k] > NVARS) return FAILED;
        for (int j = 0; j < VARIABLE[vr[k] - 1][1]; j++) {
            unsigned slot = SLOT;
            if (at == size || !is_known(slot)) return FAILED;
            d[slot] = seed[at++];
        }
    }
    return at == size ? OK : FAILED;
}
EXPORT int fmi3GetDirectionalDerivative(void *c, const unsigned unknown[], size_t n, const unsigned known[], size_t m,
                                        const double seed[], size_t seeds, double found[], size_t size) {
    SELF;
    size_t at = 0;
    double d[NV + 1] = {0};
    if (!HAS_TANGENT || I->s.mode != RUNNING || add_seeds(known, m, seed, seeds, d)) return FAILED;
    refresh(I);
    m_tangent(&I->s, d);
    for (size_t k = 0; k < n; k++) {
        int count = unknown[k] > 0 ? COUNT(unknown[k]) : -1;
        if (count < 0 || at + (size_t)count > size) return FAILED;
        for (int j = 0; j < count; j++) found[at++] = d[VARIABLE[unknown[k] - 1][0] + j];
    }
    return at == size ? OK : FAILED;
}
/* Vector times Jacobian, one forward pass for each known scalar. */
EXPORT int fmi3GetAdjointDerivative(void *c, const unsigned unknown[], size_t n, const unsigned known[], size_t m,
                                    const double seed[], size_t seeds, double found[], size_t size) {
    SELF;
    size_t at = 0;
    if (!HAS_TANGENT || I->s.mode != RUNNING) return FAILED;
    refresh(I);
    for (size_t k = 0; k < m; k++) {
        const unsigned *vr = known;
        if (known[k] == 0 || known[k] > NVARS) return FAILED;
        for (int j = 0; j < VARIABLE[known[k] - 1][1]; j++) {
            double d[NV + 1] = {0}, sum = 0;
            size_t from = 0;
            if (at == size || !is_known(SLOT)) return FAILED;
            d[SLOT] = 1;
            m_tangent(&I->s, d);
            for (size_t u = 0; u < n; u++) {
                int count = unknown[u] > 0 ? COUNT(unknown[u]) : -1;
                if (count < 0 || from + (size_t)count > seeds) return FAILED;
                for (int i = 0; i < count; i++) sum += seed[from++] * d[VARIABLE[unknown[u] - 1][0] + i];
            }
            found[at++] = sum;
        }
    }
    return at == size ? OK : FAILED;
}
NOT_HERE(fmi3EnterConfigurationMode, void *c)
NOT_HERE(fmi3ExitConfigurationMode, void *c)
NOT_HERE(fmi3GetIntervalDecimal, void *c, const unsigned *vr, size_t n, double *values, int *qualifiers)
NOT_HERE(fmi3GetIntervalFraction, void *c, const unsigned *vr, size_t n, uint64_t *counters, uint64_t *resolutions, int *qualifiers)
NOT_HERE(fmi3GetShiftDecimal, void *c, const unsigned *vr, size_t n, double *values)
NOT_HERE(fmi3GetShiftFraction, void *c, const unsigned *vr, size_t n, uint64_t *counters, uint64_t *resolutions)
NOT_HERE(fmi3SetIntervalDecimal, void *c, const unsigned *vr, size_t n, const double *values)
NOT_HERE(fmi3SetIntervalFraction, void *c, const unsigned *vr, size_t n, const uint64_t *counters, const uint64_t *resolutions)
NOT_HERE(fmi3SetShiftDecimal, void *c, const unsigned *vr, size_t n, const double *values)
NOT_HERE(fmi3SetShiftFraction, void *c, const unsigned *vr, size_t n, const uint64_t *counters, const uint64_t *resolutions)
NOT_HERE(fmi3GetOutputDerivatives, void *c, const unsigned *vr, size_t n, const int32_t *orders, double *values, size_t size)
NOT_HERE(fmi3ActivateModelPartition, void *c, unsigned vr, double time)
EXPORT int fmi3EvaluateDiscreteStates(void *c) { SELF; refresh(I); return OK; }
EXPORT int fmi3UpdateDiscreteStates(void *c, bool *again, bool *terminate, bool *nominals_changed, bool *states_changed,
                                    bool *has_next, double *next) {
    int changed = 0, status;
    SELF;
    status = update_discrete(I, &changed, next);
    *again = *nominals_changed = false;
    *terminate = I->s.ended != 0;
    *states_changed = changed != 0;
    *has_next = isfinite(*next) != 0;
    return status;
}
EXPORT int fmi3EnterContinuousTimeMode(void *c) { return c ? OK : FAILED; }
EXPORT int fmi3CompletedIntegratorStep(void *c, bool keep, bool *event_mode, bool *terminate) {
    int status;
    SELF;
    (void)keep;
    status = completed_step(I);
    *event_mode = false;
    *terminate = I->s.ended != 0;
    return status;
}
EXPORT int fmi3SetTime(void *c, double time) { SELF; I->s.time = time; I->s.dirty |= STALE; return OK; }
EXPORT int fmi3SetContinuousStates(void *c, const double x[], size_t n) { SELF; return set_states(I, x, n); }
EXPORT int fmi3GetContinuousStateDerivatives(void *c, double dx[], size_t n) { SELF; return get_rates(I, dx, n); }
EXPORT int fmi3GetEventIndicators(void *c, double z[], size_t n) { SELF; return get_roots(I, z, n); }
EXPORT int fmi3GetContinuousStates(void *c, double x[], size_t n) { SELF; return get_states(I, x, n); }
EXPORT int fmi3GetNominalsOfContinuousStates(void *c, double x[], size_t n) { (void)c; return get_nominals(x, n); }
EXPORT int fmi3GetNumberOfEventIndicators(void *c, size_t *n) { (void)c; *n = NROOT; return OK; }
EXPORT int fmi3GetNumberOfContinuousStates(void *c, size_t *n) { (void)c; *n = NX; return OK; }
EXPORT int fmi3DoStep(void *c, double time, double size, bool keep, bool *event_needed, bool *terminate,
                      bool *early_return, double *last) {
    int status, stop;
    SELF;
    (void)keep;
    stop = I->has_event_mode;
    status = do_step(I, time, size, I->has_event_mode ? &stop : NULL);
    *event_needed = I->has_event_mode && stop;
    *terminate = I->s.ended != 0;
    *last = I->s.time;
    *early_return = *event_needed && I->s.time < time + size - slack(time + size);
    if (!*early_return) *last = time + size;
    return status == DISCARD && I->s.ended ? OK : status;
}
