/* A model exchange FMU of our own, FMI 2.0 or 3.0 by -DFMI: states h, v of a ball that bounces with restitution
   0.7 from h = 1, state x with x' = rate * (u - x), and a counter with a time event each 0.25 s.
   References: 0 h, 1 v, 2 x, 3..5 their derivatives, 6 u, 7 rate, 8 ticks, 9 bounces. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif
#if FMI == 2
#define F(NAME) fmi2##NAME
typedef int Bool;
#else
#define F(NAME) fmi3##NAME
typedef bool Bool;
#endif

enum { INITIAL, EVENT, CONTINUOUS };
typedef struct {
    double v[10], time, next;
    int mode, bounced;
} Model;

API int zoo_live = 0;

static void derivatives(Model *m) {
    m->v[3] = m->v[1];
    m->v[4] = -9.81;
    m->v[5] = m->v[7] * (m->v[6] - m->v[2]);
#ifdef CHATTER
    m->v[5] = m->v[2] > 0 ? -1.0 : 1.0;
#endif
}

static void *make(void) {
    Model *m = calloc(1, sizeof(Model));
    m->v[0] = 1.0;
    m->v[7] = 1.0;
    m->next = 0.25;
    zoo_live++;
    return m;
}

#if FMI == 2
API void *fmi2Instantiate(const char *name, int type, const char *token, const char *resources, const void *callbacks,
                          int visible, int logging) {
    (void)name; (void)resources; (void)callbacks; (void)visible; (void)logging;
    return type == 0 && strcmp(token, "{ball}") == 0 ? make() : NULL;
}
API int fmi2SetupExperiment(void *c, int td, double tol, double start, int sd, double stop) {
    (void)td; (void)tol; (void)sd; (void)stop;
    ((Model *)c)->time = start;
    return 0;
}
API int fmi2EnterInitializationMode(void *c) { (void)c; return 0; }
#else
API void *fmi3InstantiateModelExchange(const char *name, const char *token, const char *resources, bool visible,
                                       bool logging, void *environment, void *log) {
    (void)name; (void)resources; (void)visible; (void)logging; (void)environment; (void)log;
    return strcmp(token, "{ball}") == 0 ? make() : NULL;
}
API int fmi3EnterInitializationMode(void *c, bool td, double tol, double start, bool sd, double stop) {
    (void)td; (void)tol; (void)sd; (void)stop;
    ((Model *)c)->time = start;
    return 0;
}
API int fmi3GetNumberOfContinuousStates(void *c, size_t *n) { (void)c; *n = 3; return 0; }
API int fmi3GetNumberOfEventIndicators(void *c, size_t *n) { (void)c; *n = 1; return 0; }
#endif
API int F(ExitInitializationMode)(void *c) { ((Model *)c)->mode = EVENT; return 0; }
API void F(FreeInstance)(void *c) { zoo_live--; free(c); }
API int F(Terminate)(void *c) { (void)c; return 0; }

API int F(EnterEventMode)(void *c) {
    Model *m = c;
    if (m->mode != CONTINUOUS) return 3;
    m->mode = EVENT;
    return 0;
}
API int F(EnterContinuousTimeMode)(void *c) {
    Model *m = c;
    if (m->mode != EVENT) return 3;
    m->mode = CONTINUOUS;
    return 0;
}

static int update(Model *m) {
    if (m->mode != EVENT) return 3;
    if (m->v[0] <= 0 && m->v[1] < 0) {
        m->v[1] *= -0.7;
        m->v[9] += 1;
    }
    if (m->time >= m->next - 1e-12) {
        m->v[8] += 1;
        m->next += 0.25;
    }
    return 0;
}
#if FMI == 2
typedef struct { int again, end, nominals, values, defined; double next; } Info;
API int fmi2NewDiscreteStates(void *c, Info *i) {
    int status = update(c);
    Info found = {0, 0, 0, 1, 1, ((Model *)c)->next};
#ifdef WANTS_END
    found.end = ((Model *)c)->time > 0.45;
#endif
    *i = found;
    return status;
}
#else
API int fmi3UpdateDiscreteStates(void *c, bool *again, bool *end, bool *nominals, bool *values, bool *defined,
                                 double *next) {
    int status = update(c);
    *again = *end = *nominals = false;
    *values = *defined = true;
    *next = ((Model *)c)->next;
#ifdef WANTS_END
    *end = ((Model *)c)->time > 0.45;
#endif
    return status;
}
#endif
API int F(CompletedIntegratorStep)(void *c, Bool no_restore, Bool *event, Bool *end) {
    (void)no_restore;
    *event = *end = 0;
    return ((Model *)c)->mode == CONTINUOUS ? 0 : 3;
}
API int F(SetTime)(void *c, double t) {
    Model *m = c;
    if (m->mode != CONTINUOUS) return 3;
    m->time = t;
    return 0;
}
API int F(SetContinuousStates)(void *c, const double x[], size_t n) {
    if (n != 3) return 3;
    memcpy(((Model *)c)->v, x, n * sizeof *x);
    return 0;
}
API int F(GetContinuousStates)(void *c, double x[], size_t n) {
    if (n != 3) return 3;
    memcpy(x, ((Model *)c)->v, n * sizeof *x);
    return 0;
}
static int slopes(Model *m, double x[], size_t n) {
    derivatives(m);
    memcpy(x, m->v + 3, n * sizeof *x);
#ifdef DOMAIN
    if (m->time > 0.4) return 2;
#endif
#ifdef FAILS
    if (m->time > 0.4) return 3;
#endif
    return n == 3 ? 0 : 3;
}
#if FMI == 2
API int fmi2GetDerivatives(void *c, double x[], size_t n) { return slopes(c, x, n); }
#else
API int fmi3GetContinuousStateDerivatives(void *c, double x[], size_t n) { return slopes(c, x, n); }
#endif
API int F(GetEventIndicators)(void *c, double z[], size_t n) {
    Model *m = c;
    z[0] = m->v[0] + (m->v[0] == 0 && m->v[1] > 0 ? 1e-15 : 0);
    return n == 1 ? 0 : 3;
}
API int F(GetNominalsOfContinuousStates)(void *c, double x[], size_t n) {
    (void)c;
    for (size_t i = 0; i < n; i++) x[i] = 1.0;
    return 0;
}

static int get(Model *m, const unsigned r[], size_t n, double v[]) {
    derivatives(m);
    for (size_t i = 0; i < n; i++) { if (r[i] > 9) return 3; v[i] = m->v[r[i]]; }
    return 0;
}
static int set(Model *m, const unsigned r[], size_t n, const double v[]) {
    for (size_t i = 0; i < n; i++) { if (r[i] > 9) return 3; m->v[r[i]] = v[i]; }
    return 0;
}
#if FMI == 2
API int fmi2GetReal(void *c, const unsigned r[], size_t n, double v[]) { return get(c, r, n, v); }
API int fmi2SetReal(void *c, const unsigned r[], size_t n, const double v[]) { return set(c, r, n, v); }
API int fmi2GetFMUstate(void *c, void **s) {
    *s = malloc(sizeof(Model));
    memcpy(*s, c, sizeof(Model));
    return 0;
}
API int fmi2SetFMUstate(void *c, void *s) { memcpy(c, s, sizeof(Model)); return 0; }
API int fmi2FreeFMUstate(void *c, void **s) { (void)c; free(*s); *s = NULL; return 0; }
#else
API int fmi3GetFloat64(void *c, const unsigned r[], size_t n, double v[], size_t k) { return n == k ? get(c, r, n, v) : 3; }
API int fmi3SetFloat64(void *c, const unsigned r[], size_t n, const double v[], size_t k) {
    return n == k ? set(c, r, n, v) : 3;
}
API int fmi3GetFMUState(void *c, void **s) {
    *s = malloc(sizeof(Model));
    memcpy(*s, c, sizeof(Model));
    return 0;
}
API int fmi3SetFMUState(void *c, void *s) { memcpy(c, s, sizeof(Model)); return 0; }
API int fmi3FreeFMUState(void *c, void **s) { (void)c; free(*s); *s = NULL; return 0; }
#endif
