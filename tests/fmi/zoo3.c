/* A small FMI 3.0 co-simulation FMU of our own, for tests. What it does wrong is chosen with -D.

   Float64  0 u (input)  1 gain (tunable)  2 offset (fixed)  3 y = gain*u + offset  4 x, integral of u  5 internal time
            10 q[3] (input)  11 r[3] = 2*q  12 m[2,2], element (i,j) = 10*i + j + q[1]
   Any other type: 20 in, 21 out; numbers copy in + 1, Boolean !in, String "<in>", Binary reversed. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

typedef void (*Logger)(void *environment, int status, const char *category, const char *text);
typedef struct {
    double real[6], q[3];
    float f32[2];
    int8_t i8[2]; uint8_t u8[2];
    int16_t i16[2]; uint16_t u16[2];
    int32_t i32[2]; uint32_t u32[2];
    int64_t i64[2]; uint64_t u64[2];
    bool boolean[2];
    char text[64], quoted[68];
    uint8_t bytes[64], reversed[64];
    size_t n_bytes;
} State;
typedef struct {
    State s;
    bool initialized;
    Logger log;
    void *environment;
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

API int zoo_live = 0;

static int answer(Model *m, const char *call) {
    if (strcmp(call, FAULT_CALL) != 0) return 0;
    if (strcmp(call, "DoStep") == 0 && m->s.real[5] < 0.45) return 0;
    m->log(m->environment, FAULT_STATUS, "logStatusError", "cannot go on: 100%s");
    return FAULT_STATUS;
}

API const char *fmi3GetVersion(void) { return "3.0"; }

API void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, bool visible, bool logging,
                                      bool event_mode, bool early_return, const uint32_t required[], size_t n_required,
                                      void *environment, Logger log, void *intermediate) {
    (void)name; (void)visible; (void)logging; (void)required; (void)n_required; (void)intermediate;
#ifdef INSTANTIATE_NULL
    return NULL;
#endif
    size_t n = strlen(resources);
    if (strcmp(token, TOKEN) != 0 || event_mode || early_return || n < 2 || strncmp(resources, "file:", 5) == 0 ||
        (resources[n - 1] != '/' && resources[n - 1] != '\\')) {
        log(environment, 3, "logStatusError", "wrong token or resource path");
        return NULL;
    }
    Model *m = calloc(1, sizeof(Model));
    m->log = log;
    m->environment = environment;
    m->s.real[1] = 1.0;
    zoo_live++;
    return m;
}
API void fmi3FreeInstance(void *c) { zoo_live--; free(c); }
API int fmi3EnterInitializationMode(void *c, bool tolerance_defined, double tolerance, double start, bool stop_defined,
                                    double stop) {
    (void)tolerance_defined; (void)tolerance; (void)stop_defined; (void)stop;
    ((Model *)c)->s.real[5] = start;
    return answer(c, "EnterInitializationMode");
}
API int fmi3ExitInitializationMode(void *c) {
    ((Model *)c)->initialized = true;
    return answer(c, "ExitInitializationMode");
}
API int fmi3Terminate(void *c) { return answer(c, "Terminate"); }
API int fmi3DoStep(void *c, double t, double h, bool no_restore, bool *event, bool *terminate, bool *early, double *reached) {
    Model *m = c;
    (void)no_restore;
    *event = *terminate = *early = false;
    *reached = m->s.real[5];
    int status = answer(m, "DoStep");
    if (status > 1 || status < 0) return status;
    if (fabs(t - m->s.real[5]) > 1e-9) return 3;
#ifdef DISCARD_ABOVE
    if (h > DISCARD_ABOVE) {
        m->s.real[4] = -1000; /* a half-done step leaves traces */
        return 2;
    }
#endif
#ifdef TERMINATED
    if (t > 0.45) { *terminate = true; return 0; }
#endif
    m->s.real[4] += h * m->s.real[0];
    *reached = m->s.real[5] = t + h;
    return status;
}

API int fmi3GetFloat64(void *c, const uint32_t r[], size_t n, double v[], size_t n_values) {
    Model *m = c;
    size_t k = 0;
    m->s.real[3] = m->s.real[1] * m->s.real[0] + m->s.real[2];
#ifdef FAULT_VALUE
    if (m->s.real[5] > 0.45) m->s.real[3] = FAULT_VALUE;
#endif
    for (size_t i = 0; i < n; i++) {
        if (r[i] < 6) v[k++] = m->s.real[r[i]];
        else if (r[i] == 10) for (int j = 0; j < 3; j++) v[k++] = m->s.q[j];
        else if (r[i] == 11) for (int j = 0; j < 3; j++) v[k++] = 2.0 * m->s.q[j];
        else if (r[i] == 12) for (int j = 0; j < 4; j++) v[k++] = 10.0 * (j / 2 + 1) + (j % 2 + 1) + m->s.q[0];
        else return 3;
    }
    return k == n_values ? answer(m, "GetFloat64") : 3;
}
API int fmi3SetFloat64(void *c, const uint32_t r[], size_t n, const double v[], size_t n_values) {
    Model *m = c;
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (r[i] < 6) {
            if (r[i] == 2 && m->initialized) return 3;
            m->s.real[r[i]] = v[k++];
        } else if (r[i] == 10) for (int j = 0; j < 3; j++) m->s.q[j] = v[k++];
        else return 3;
    }
    return k == n_values ? answer(m, "SetFloat64") : 3;
}

#define MOVE(NAME, TYPE, FIELD, RESULT)                                                                       \
    API int fmi3Get##NAME(void *c, const uint32_t r[], size_t n, TYPE v[], size_t n_values) {                 \
        Model *m = c;                                                                                         \
        m->s.FIELD[1] = RESULT m->s.FIELD[0];                                                                 \
        for (size_t i = 0; i < n; i++) { if (r[i] < 20 || r[i] > 21) return 3; v[i] = m->s.FIELD[r[i] - 20]; } \
        return n == n_values ? 0 : 3;                                                                         \
    }                                                                                                         \
    API int fmi3Set##NAME(void *c, const uint32_t r[], size_t n, const TYPE v[], size_t n_values) {           \
        for (size_t i = 0; i < n; i++) { if (r[i] != 20) return 3; ((Model *)c)->s.FIELD[0] = v[i]; }         \
        return n == n_values ? 0 : 3;                                                                         \
    }
#ifndef ONLY_REAL
MOVE(Float32, float, f32, 1 +)
MOVE(Int8, int8_t, i8, 1 +)
MOVE(UInt8, uint8_t, u8, 1 +)
MOVE(Int16, int16_t, i16, 1 +)
MOVE(UInt16, uint16_t, u16, 1 +)
MOVE(Int32, int32_t, i32, 1 +)
MOVE(UInt32, uint32_t, u32, 1 +)
MOVE(Int64, int64_t, i64, 1 +)
MOVE(UInt64, uint64_t, u64, 1 +)
MOVE(Boolean, bool, boolean, !)
API int fmi3GetString(void *c, const uint32_t r[], size_t n, const char *v[], size_t n_values) {
    Model *m = c;
    snprintf(m->s.quoted, sizeof m->s.quoted, "<%s>", m->s.text);
    for (size_t i = 0; i < n; i++) v[i] = r[i] == 20 ? m->s.text : m->s.quoted;
    return n == n_values ? 0 : 3;
}
API int fmi3SetString(void *c, const uint32_t r[], size_t n, const char *const v[], size_t n_values) {
    for (size_t i = 0; i < n; i++) {
        if (r[i] != 20) return 3;
        snprintf(((Model *)c)->s.text, sizeof ((Model *)c)->s.text, "%s", v[i]);
    }
    return n == n_values ? 0 : 3;
}
API int fmi3GetBinary(void *c, const uint32_t r[], size_t n, size_t sizes[], const uint8_t *v[], size_t n_values) {
    State *s = &((Model *)c)->s;
    for (size_t j = 0; j < s->n_bytes; j++) s->reversed[j] = s->bytes[s->n_bytes - 1 - j];
    for (size_t i = 0; i < n; i++) { sizes[i] = s->n_bytes; v[i] = r[i] == 20 ? s->bytes : s->reversed; }
    return n == n_values ? 0 : 3;
}
API int fmi3SetBinary(void *c, const uint32_t r[], size_t n, const size_t sizes[], const uint8_t *const v[],
                      size_t n_values) {
    State *s = &((Model *)c)->s;
    for (size_t i = 0; i < n; i++) {
        if (r[i] != 20 || sizes[i] > sizeof s->bytes) return 3;
        memcpy(s->bytes, v[i], sizes[i]);
        s->n_bytes = sizes[i];
    }
    return n == n_values ? 0 : 3;
}
API int fmi3GetFMUState(void *c, void **state) {
    if (!*state) {
        *state = malloc(sizeof(State));
        zoo_live += 1000;
    }
    memcpy(*state, &((Model *)c)->s, sizeof(State));
    return 0;
}
API int fmi3SetFMUState(void *c, void *state) { memcpy(&((Model *)c)->s, state, sizeof(State)); return 0; }
API int fmi3FreeFMUState(void *c, void **state) {
    (void)c;
    free(*state);
    *state = NULL;
    zoo_live -= 1000;
    return 0;
}
#endif
