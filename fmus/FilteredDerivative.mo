model FilteredDerivative "Derivative of a measured signal with finite bandwidth"
  // y = s/(time_constant_s*s + 1) u, realised as y = (u - x)/T with T*der(x) = u - x.
  // A signal that arrives from another program has no derivative of its own (its value is held
  // between communication points), so the bandwidth is part of the instrument: a ramp of slope r
  // that is held for h seconds at a time reads r*(h/T)*exp(-h/T)/(1 - exp(-h/T)) at the end of
  // each hold. Keep h well below T.
  // While sample_valid is 0 the output is 0, and the filter starts at the first valid sample:
  // the step from a placeholder to the first measurement is not a rate.
  parameter Real time_constant_s(unit="s", min=1e-6) = 0.02 "Time constant of the filter";
  input Real u(start=0) "Signal to differentiate";
  input Real sample_valid(unit="1", start=1) "1 while u is a measurement, 0 while it is a placeholder";
  output Real y "Filtered derivative of u, 0 while there is no measurement";
protected
  Real x "Low-pass filtered u";
  Boolean valid "u is a measurement";
initial equation
  x = u;
equation
  assert(time_constant_s > 0, "time_constant_s must be positive");
  valid = sample_valid > 0.5;
  y = if valid then (u - x)/time_constant_s else 0;
  der(x) = y;
  when valid then
    reinit(x, u);
  end when;
end FilteredDerivative;
