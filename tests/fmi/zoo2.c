/* A small FMI 2.0 co-simulation FMU of our own, for tests. What it does wrong is chosen with -D.

   Real    0 u (input)  1 gain (tunable)  2 offset (fixed)  3 y = gain*u + offset  4 x, integral of u
           5 internal time  6 size of the last step
   Integer 0 in  1 out = 2*in      Boolean 0 in  1 out = !in      String 0 in  1 out = "<in>" */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

typedef void (*Logger)(void *environment, const char *instance, int status, const char *category, const char *text, ...);
typedef struct {
    Logger log;
    void *(*allocate)(size_t count, size_t size);
    void (*release)(void *memory);
    void (*finished)(void *environment, int status);
    void *environment;
} Callbacks;
typedef struct {
    double real[7];
    int integer[2];
    int boolean[2];
    char text[64];
    char quoted[68];
} State;
typedef struct {
    State s;
    int initialized;
    const Callbacks *callbacks;
} Model;

#ifndef TOKEN
#define TOKEN "{zoo}"
#endif
#ifndef FAULT_STATUS
#define FAULT_STATUS 0
#endif
#ifndef FAULT_CALL
#define FAULT_CALL ""
#endif

#ifdef HOSTILE
#include <signal.h>
#ifndef _WIN32
#include <unistd.h>
#endif
static int overflow(int n) {
    volatile char frame[65536];
    frame[0] = (char)n;
    return n > 1000000000 ? 0 : overflow(n + 1) + frame[0];
}
static void misbehave(double t) {
    if (t < 0.45) return;
    HOSTILE;
}
#else
static void misbehave(double t) { (void)t; }
#endif

API int zoo_live = 0;

static int answer(Model *m, const char *call) {
    if (strcmp(call, FAULT_CALL) != 0) return 0;
    if (strcmp(call, "DoStep") == 0 && m->s.real[5] < 0.45) return 0;
    if (m->callbacks && m->callbacks->log)
        m->callbacks->log(m->callbacks->environment, "zoo", FAULT_STATUS, "logStatusError",
                          "cannot %s: %d is above %.2f", call, 7, 6.5);
    return FAULT_STATUS;
}

static void outputs(State *s) {
    s->real[3] = s->real[1] * s->real[0] + s->real[2];
    s->integer[1] = 2 * s->integer[0];
    s->boolean[1] = !s->boolean[0];
    snprintf(s->quoted, sizeof s->quoted, "<%s>", s->text);
#ifdef FAULT_VALUE
    if (s->real[5] > 0.45) s->real[3] = FAULT_VALUE;
#endif
}

API const char *fmi2GetVersion(void) { return "2.0"; }
API const char *fmi2GetTypesPlatform(void) { return "default"; }

API void *fmi2Instantiate(const char *name, int type, const char *token, const char *resources, const Callbacks *callbacks,
                          int visible, int logging) {
    (void)name; (void)visible; (void)logging;
#ifdef INSTANTIATE_NULL
    return NULL;
#endif
    if (type != 1 || strcmp(token, TOKEN) != 0 || strncmp(resources, "file:", 5) != 0) {
        callbacks->log(callbacks->environment, "zoo", 3, "logStatusError", "wrong token %s, expected %s", token, TOKEN);
        return NULL;
    }
    Model *m = callbacks->allocate(1, sizeof(Model));
    m->callbacks = callbacks;
    m->s.real[1] = 1.0;
    zoo_live++;
#ifdef HELLO
    callbacks->log(callbacks->environment, "zoo", 1, "hello", "100%% of %s", "nothing");
#endif
    return m;
}
API void fmi2FreeInstance(void *c) {
    Model *m = c;
#ifdef FREE_ABORTS
    abort();
#endif
    zoo_live--;
    m->callbacks->release(m);
}
API int fmi2SetupExperiment(void *c, int tolerance_defined, double tolerance, double start, int stop_defined, double stop) {
    (void)tolerance_defined; (void)tolerance; (void)stop_defined; (void)stop;
    ((Model *)c)->s.real[5] = start;
    return answer(c, "SetupExperiment");
}
API int fmi2EnterInitializationMode(void *c) { return answer(c, "EnterInitializationMode"); }
API int fmi2ExitInitializationMode(void *c) {
    ((Model *)c)->initialized = 1;
    return answer(c, "ExitInitializationMode");
}
API int fmi2Terminate(void *c) { return answer(c, "Terminate"); }
API int fmi2Reset(void *c) { (void)c; return 0; }

API int fmi2DoStep(void *c, double t, double h, int no_restore) {
    Model *m = c;
    (void)no_restore;
    misbehave(t);
    int status = answer(m, "DoStep");
    if (status > 1 || status < 0) return status;
    if (fabs(t - m->s.real[5]) > 1e-9) return 3;
#ifdef DISCARD_ABOVE
    if (h > DISCARD_ABOVE) {
        m->s.real[4] = -1000; /* a half-done step leaves traces */
        return 2;
    }
#endif
    m->s.real[4] += h * m->s.real[0];
    m->s.real[5] = t + h;
    m->s.real[6] = h;
    return status;
}

#define MOVE(NAME, TYPE, FIELD, N, COPY_IN)                                                       \
    API int fmi2Get##NAME(void *c, const unsigned r[], size_t n, TYPE v[]) {                      \
        Model *m = c;                                                                             \
        outputs(&m->s);                                                                           \
        for (size_t i = 0; i < n; i++) { if (r[i] >= N) return 3; v[i] = m->s.FIELD[r[i]]; }      \
        return answer(m, "Get" #NAME);                                                            \
    }                                                                                             \
    API int fmi2Set##NAME(void *c, const unsigned r[], size_t n, const TYPE v[]) {                \
        Model *m = c;                                                                             \
        for (size_t i = 0; i < n; i++) {                                                          \
            if (r[i] >= N) return 3;                                                              \
            if (COPY_IN && r[i] == 2 && m->initialized) return 3;                                 \
            m->s.FIELD[r[i]] = v[i];                                                              \
        }                                                                                         \
        return answer(m, "Set" #NAME);                                                            \
    }
MOVE(Real, double, real, 7, 1)
#ifndef ONLY_REAL
MOVE(Integer, int, integer, 2, 0)
MOVE(Boolean, int, boolean, 2, 0)
API int fmi2GetString(void *c, const unsigned r[], size_t n, const char *v[]) {
    Model *m = c;
    outputs(&m->s);
    for (size_t i = 0; i < n; i++) v[i] = r[i] == 0 ? m->s.text : m->s.quoted;
    return 0;
}
API int fmi2SetString(void *c, const unsigned r[], size_t n, const char *const v[]) {
    Model *m = c;
    for (size_t i = 0; i < n; i++) {
        if (r[i] != 0) return 3;
        snprintf(m->s.text, sizeof m->s.text, "%s", v[i]);
    }
    return 0;
}
API int fmi2GetFMUstate(void *c, void **state) {
    if (!*state) {
        *state = malloc(sizeof(State));
        zoo_live += 1000;
    }
    memcpy(*state, &((Model *)c)->s, sizeof(State));
    return 0;
}
API int fmi2SetFMUstate(void *c, void *state) {
    memcpy(&((Model *)c)->s, state, sizeof(State));
    return 0;
}
API int fmi2FreeFMUstate(void *c, void **state) {
    (void)c;
    free(*state);
    *state = NULL;
    zoo_live -= 1000;
    return 0;
}
API int fmi2GetRealStatus(void *c, int kind, double *value) {
    *value = ((Model *)c)->s.real[5];
    return kind == 2 ? 0 : 2;
}
API int fmi2GetBooleanStatus(void *c, int kind, int *value) {
    (void)c;
#ifdef TERMINATED
    *value = 1;
#else
    *value = 0;
#endif
    return kind == 3 ? 0 : 2;
}
#endif
