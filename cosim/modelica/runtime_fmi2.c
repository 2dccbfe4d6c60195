
/* ---- FMI 2.0: value references are slots */

EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char *fmi2GetVersion(void) { return "2.0"; }
EXPORT void *fmi2Instantiate(const char *name, int type, const char *token, const char *resources,
                             const Callbacks2 *callbacks, int visible, int logging) {
    Instance *I = instantiate(name, token);
    (void)resources; (void)visible; (void)logging;
    if (!I) {
        if (callbacks && callbacks->logger)
            callbacks->logger(callbacks->environment, name, FAILED, "logStatusError", "the GUID is not that of %s", MODEL_NAME);
        return NULL;
    }
    I->callbacks = callbacks;
    I->is_exchange = type == 0;
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
EXPORT int fmi2EnterInitializationMode(void *c) {
    SELF;
    I->s.mode = INITIALIZING;
    I->s.dirty |= STALE | PARAMETERS;
    return OK;
}
EXPORT int fmi2ExitInitializationMode(void *c) { SELF; return exit_initialization(I); }
EXPORT int fmi2Terminate(void *c) { return c ? OK : FAILED; }
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
GET2(fmi2GetString, const char *, rt_text(&I->s, x))
SET2(fmi2SetReal, double)
SET2(fmi2SetInteger, int)
SET2(fmi2SetBoolean, int)
EXPORT int fmi2SetString(void *c, const unsigned vr[], size_t n, const char *const values[]) {
    SELF;
    for (size_t k = 0; k < n; k++)
        if (set_text(I, vr[k], values[k])) return FAILED;
    return OK;
}
EXPORT int fmi2GetFMUstate(void *c, void **state) { SELF; return state_get(I, state); }
EXPORT int fmi2SetFMUstate(void *c, void *state) { SELF; memcpy(&I->s, state, sizeof(State)); return OK; }
EXPORT int fmi2FreeFMUstate(void *c, void **state) { (void)c; free(*state); *state = NULL; return OK; }
EXPORT int fmi2SerializedFMUstateSize(void *c, void *state, size_t *size) {
    (void)c; (void)state;
    *size = sizeof(Serialized);
    return OK;
}
EXPORT int fmi2SerializeFMUstate(void *c, void *state, unsigned char bytes[], size_t size) {
    (void)c;
    return state_write(state, bytes, size);
}
EXPORT int fmi2DeSerializeFMUstate(void *c, const unsigned char bytes[], size_t size, void **state) {
    (void)c;
    return state_read(bytes, size, state);
}
EXPORT int fmi2GetDirectionalDerivative(void *c, const unsigned unknown[], size_t n, const unsigned known[], size_t m,
                                        const double seed[], double found[]) {
    SELF;
    double d[NV + 1] = {0};
    if (!HAS_TANGENT || I->s.mode != RUNNING) return FAILED;
    refresh(I);
    for (size_t k = 0; k < m; k++) {
        if (!is_known(known[k])) return FAILED;
        d[known[k]] = seed[k];
    }
    m_tangent(&I->s, d);
    for (size_t k = 0; k < n; k++) {
        if (unknown[k] >= NV) return FAILED;
        found[k] = d[unknown[k]];
    }
    return OK;
}
NOT_HERE(fmi2SetRealInputDerivatives, void *c, const unsigned *vr, size_t n, const int *order, const double *values)
NOT_HERE(fmi2GetRealOutputDerivatives, void *c, const unsigned *vr, size_t n, const int *order, double *values)
EXPORT int fmi2DoStep(void *c, double time, double size, int keep) { SELF; (void)keep; return do_step(I, time, size, NULL); }
NOT_HERE(fmi2CancelStep, void *c)
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

/* Model exchange. */
typedef struct {
    int again, terminate, nominals_changed, states_changed, has_next;
    double next;
} EventInfo2;
EXPORT int fmi2EnterEventMode(void *c) { return c ? OK : FAILED; }
EXPORT int fmi2EnterContinuousTimeMode(void *c) { return c ? OK : FAILED; }
EXPORT int fmi2NewDiscreteStates(void *c, EventInfo2 *info) {
    SELF;
    int status = update_discrete(I, &info->states_changed, &info->next);
    info->again = info->nominals_changed = 0;
    info->terminate = I->s.ended;
    info->has_next = isfinite(info->next) != 0;
    return status;
}
EXPORT int fmi2CompletedIntegratorStep(void *c, int keep, int *event_mode, int *terminate) {
    int status;
    SELF;
    (void)keep;
    status = completed_step(I);
    *event_mode = 0;
    *terminate = I->s.ended;
    return status;
}
EXPORT int fmi2SetTime(void *c, double time) { SELF; I->s.time = time; I->s.dirty |= STALE; return OK; }
EXPORT int fmi2SetContinuousStates(void *c, const double x[], size_t n) { SELF; return set_states(I, x, n); }
EXPORT int fmi2GetDerivatives(void *c, double dx[], size_t n) { SELF; return get_rates(I, dx, n); }
EXPORT int fmi2GetEventIndicators(void *c, double z[], size_t n) { SELF; return get_roots(I, z, n); }
EXPORT int fmi2GetContinuousStates(void *c, double x[], size_t n) { SELF; return get_states(I, x, n); }
EXPORT int fmi2GetNominalsOfContinuousStates(void *c, double x[], size_t n) { (void)c; return get_nominals(x, n); }
