model FilteredSignal "First-order low-pass filter that starts at the first valid sample"
  // time_constant_s*der(y) = u - y. The state is set to the first valid sample, so a program
  // that comes alive late does not show up as a transient. While sample_valid is 0 the last
  // filtered value is kept and the acquisition falls back to 0: the consumer sees its age.
  parameter Real time_constant_s(unit="s", min=1e-6) = 0.02 "Time constant of the filter";
  parameter Real acquisition_time_constant_s(unit="s", min=1e-6) = 0.02
    "Time constant with which acquisition follows the validity";
  input Real u(start=0) "Signal to filter";
  input Real sample_valid(unit="1", start=1) "1 while u is a measurement, 0 while it is a placeholder";
  output Real y "Filtered signal";
  output Real acquisition(unit="1", start=0, fixed=true)
    "Confidence in y: goes to 1 while samples are valid, else to 0";
protected
  Real x "Low-pass filtered u";
  Boolean valid "u is a measurement";
initial equation
  x = u;
equation
  assert(time_constant_s > 0 and acquisition_time_constant_s > 0, "time constants must be positive");
  valid = sample_valid > 0.5;
  der(x) = if valid then (u - x)/time_constant_s else 0;
  der(acquisition) = ((if valid then 1 else 0) - acquisition)/acquisition_time_constant_s;
  y = x;
  when valid then
    reinit(x, u);
  end when;
end FilteredSignal;
