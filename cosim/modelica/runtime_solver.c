
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
