model JointEncoder "Absolute encoder of a revolute joint: quantised angle, its turns and its rate"
  // Every sample_period_s the angle, which arrives in (-pi, pi], is followed over the seam: the
  // shortest step since the last sample is added to a count of turns (right up to half a turn per
  // sample). The reading is the nearest of counts_per_revolution equal steps; the rate is the
  // difference of two readings over one period, low-pass filtered, so that it is 0 or at least
  // one step per period before the filter: slow motion shows as pulses, as it does in hardware.
  parameter Real sample_period_s(unit="s", min=1e-6) = 1/240 "Period of the encoder";
  parameter Real counts_per_revolution(unit="1", min=1) = 4096 "Steps per turn";
  parameter Real zero_offset_rad(unit="rad") = 0 "Angle of the joint at which the encoder reads 0";
  parameter Real direction(unit="1") = 1 "1 or -1: sense of the encoder against the joint";
  parameter Real rate_filter_time_constant_s(unit="s", min=0) = 0.02 "Time constant of the rate's filter, 0 for none";
  input Real angle(unit="rad", start=0) "Angle of the joint";
  output Real angle_measured(unit="rad", start=0, fixed=true) "Reading in (-pi, pi]";
  output Real angle_unwrapped(unit="rad", start=0, fixed=true) "Reading with full turns since the start";
  output Real rate_measured(unit="rad/s", start=0, fixed=true) "Rate from differences of readings";
  output Real counts(unit="1", start=0, fixed=true) "Reading in steps, with full turns";
protected
  constant Real pi(unit="rad") = 3.14159265358979323846 "Half a turn";
  parameter Real resolution(unit="rad") = 2*pi/counts_per_revolution "Angle of one step";
  discrete Real started(unit="1", start=0, fixed=true) "1 once there was a sample";
  discrete Real last(unit="rad", start=0, fixed=true) "Angle at the last sample, in the encoder's sense";
  discrete Real position(unit="rad", start=0, fixed=true) "Angle with full turns";
  discrete Real relative(unit="rad", start=0, fixed=true) "Angle from the encoder's zero, in its sense";
equation
  assert(abs(abs(direction) - 1) < 1e-9, "direction must be 1 or -1");
  assert(counts_per_revolution >= 1, "counts_per_revolution must be at least 1");
  when sample(0, sample_period_s) then
    started = 1;
    relative = direction*(angle - zero_offset_rad);
    last = relative;
    position = if pre(started) > 0.5 then
      pre(position) + (relative - pre(last)) - 2*pi*floor((relative - pre(last))/(2*pi) + 0.5)
      else relative - 2*pi*floor(relative/(2*pi) + 0.5);
    counts = floor(position/resolution + 0.5);
    angle_unwrapped = counts*resolution;
    angle_measured = angle_unwrapped - 2*pi*ceil(angle_unwrapped/(2*pi) - 0.5);
    rate_measured = if pre(started) > 0.5 then
      (rate_filter_time_constant_s*pre(rate_measured) + (counts - pre(counts))*resolution)
        /(rate_filter_time_constant_s + sample_period_s) else 0;
  end when;
end JointEncoder;
