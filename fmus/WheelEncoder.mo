model WheelEncoder "Incremental wheel encoder: pulses, distance and speed"
  // A counter that starts at 0 with the run and counts pulses of the turned angle, in both
  // directions. The start is in the middle of a pulse, so that a wheel that trembles at rest
  // counts nothing. The angle arrives in (-pi, pi] and is followed over the seam (right up to half
  // a turn per sample). Speed is the distance of the last window_samples samples over their time:
  // a longer window is smoother and later.
  parameter Real sample_period_s(unit="s", min=1e-6) = 1/240 "Period of the counter";
  parameter Real pulses_per_revolution(unit="1", min=1) = 1024 "Pulses per turn (after quadrature)";
  parameter Real wheel_radius_m(unit="m", min=0) = 0.15 "Radius of the wheel";
  parameter Real direction(unit="1") = 1 "1 or -1: sense of the encoder against the joint";
  constant Integer window_samples = 8 "Samples over which the speed is taken";
  input Real angle(unit="rad", start=0) "Angle of the wheel's joint";
  output Real pulses(unit="1", start=0, fixed=true) "Pulses since the start, signed";
  output Real distance_m(unit="m", start=0, fixed=true) "Distance rolled since the start, signed";
  output Real wheel_rate_radps(unit="rad/s", start=0, fixed=true) "Angular rate of the wheel";
  output Real speed_mps(unit="m/s", start=0, fixed=true) "Speed of the rolling wheel";
protected
  constant Real pi(unit="rad") = 3.14159265358979323846 "Half a turn";
  parameter Real resolution(unit="rad") = 2*pi/pulses_per_revolution "Angle of one pulse";
  discrete Real started(unit="1", start=0, fixed=true) "1 once there was a sample";
  discrete Real last(unit="rad", start=0, fixed=true) "Angle at the last sample";
  discrete Real turned(unit="rad", start=0, fixed=true) "Angle turned since the start";
  discrete Real history[window_samples](each unit="1", each start=0, each fixed=true)
    "Pulses at the last samples, newest first";
equation
  assert(abs(abs(direction) - 1) < 1e-9, "direction must be 1 or -1");
  assert(pulses_per_revolution >= 1, "pulses_per_revolution must be at least 1");
  when sample(0, sample_period_s) then
    started = 1;
    last = angle;
    turned = if pre(started) > 0.5 then
      pre(turned) + direction*(angle - pre(last) - 2*pi*floor((angle - pre(last))/(2*pi) + 0.5)) else 0;
    pulses = floor(turned/resolution + 0.5);
    history = cat(1, {pre(pulses)}, pre(history[1:window_samples - 1]));
    distance_m = pulses*resolution*wheel_radius_m;
    wheel_rate_radps = (pulses - history[window_samples])*resolution/(window_samples*sample_period_s);
    speed_mps = wheel_rate_radps*wheel_radius_m;
  end when;
end WheelEncoder;
