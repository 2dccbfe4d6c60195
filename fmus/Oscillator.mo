model Oscillator "Sine wave whose frequency can change without a jump"
  // The phase is integrated: a new frequency takes effect from where the wave is,
  // which amplitude*sin(2*pi*frequency*time) would not do.
  parameter Real amplitude = 1 "Peak value of the wave";
  parameter Real offset = 0 "Mean value of the wave";
  parameter Real initial_phase(unit="rad") = 0 "Phase at the start";
  input Real frequency(unit="Hz", start=1) "Frequency";
  output Real signal "offset + amplitude*sin(phase)";
  output Real phase(unit="rad") "Phase since the start";
protected
  constant Real pi(unit="rad") = 3.14159265358979323846 "Half a turn";
initial equation
  phase = initial_phase;
equation
  der(phase) = 2*pi*frequency;
  signal = offset + amplitude*sin(phase);
end Oscillator;
