
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
