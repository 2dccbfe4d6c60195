model PID "Sampled PID controller with anti-windup, derivative filter and a wrap for joint angles"
  // Every sample_period_s, with e = setpoint - measurement:
  //   P = kp*e
  //   D = (Tf*D_before + kd*(measurement_before - measurement))/(Tf + period)   (backward Euler)
  //   v = P + I + D + feedforward,   command = v limited to command_min .. command_max
  //   I grows by period*(ki*e + (command - v)/Tt)                               (back-calculation)
  // The derivative acts on the measurement, so that a step of the setpoint gives no spike. While
  // the command is at its limit, I is driven back with the time constant Tt instead of winding up.
  // circular = 1 takes e and the measurement's step as angles in [-pi, pi): a revolute joint's
  // measured angle jumps there by a turn, which is no error of a turn.
  // enable = 0 commands 0 within the limits and clears the memory: enabling starts afresh.
  parameter Real sample_period_s(unit="s", min=1e-6) = 1/120 "Period of the controller";
  parameter Real kp = 1 "Proportional gain, unit of command per unit of error";
  parameter Real ki = 0 "Integral gain";
  parameter Real kd = 0 "Derivative gain";
  parameter Real derivative_filter_time_constant_s(unit="s", min=0) = 0.02
    "Time constant Tf of the derivative's filter";
  parameter Real anti_windup_time_constant_s(unit="s", min=0) = 0.1
    "Time constant Tt with which a saturated integral is driven back";
  parameter Real command_min = -1e9 "Least command";
  parameter Real command_max = 1e9 "Greatest command";
  parameter Real circular(unit="1") = 0 "1 when setpoint and measurement are angles of a turning joint";
  input Real setpoint(start=0) "Wanted value";
  input Real measurement(start=0) "Measured value";
  input Real feedforward(start=0) "Added to the command before the limits";
  input Real enable(unit="1", start=1) "1 to control, 0 to command nothing and clear the memory";
  output Real command(start=0, fixed=true) "Limited command";
  output Real error(start=0, fixed=true) "Setpoint minus measurement at the latest sample";
  output Real integral(start=0, fixed=true) "Integral part of the command for the next sample";
  output Real saturated(unit="1", start=0, fixed=true) "1 while the command is at a limit, else 0";
protected
  constant Real pi(unit="1") = 3.14159265358979323846 "Half a turn";
  // A factor and not an if: a front end may decide an if over parameters once and for all.
  parameter Real seam = if circular > 0.5 then 2*pi else 0 "Jump of a circular measurement";
  discrete Real step(start=0, fixed=true) "Change of the measurement since the last sample";
  discrete Real last(start=0, fixed=true) "Measurement of the last sample";
  discrete Real derivative(start=0, fixed=true) "Derivative part of the command";
  discrete Real wanted(start=0, fixed=true) "Command before the limits";
  discrete Real active(unit="1", start=0, fixed=true) "1 when the last sample was a controlled one";
equation
  assert(command_min <= command_max, "command_min must not be above command_max");
  when sample(0, sample_period_s) then
    active = if enable > 0.5 then 1 else 0;
    error = setpoint - measurement - seam*floor((setpoint - measurement)/(2*pi) + 0.5);
    step = measurement - pre(last) - seam*floor((measurement - pre(last))/(2*pi) + 0.5);
    last = measurement;
    // The first controlled sample has no predecessor to take a rate from.
    derivative = if active > 0.5 and pre(active) > 0.5 then
      (derivative_filter_time_constant_s*pre(derivative) - kd*step)
        /(derivative_filter_time_constant_s + sample_period_s) else 0;
    wanted = if active > 0.5 then kp*error + pre(integral) + derivative + feedforward else 0;
    command = min(command_max, max(command_min, wanted));
    saturated = if wanted > command_max or wanted < command_min then 1 else 0;
    integral = if active > 0.5 then
      pre(integral) + sample_period_s*ki*error
        + (command - wanted)*sample_period_s/max(anti_windup_time_constant_s, sample_period_s) else 0;
  end when;
end PID;
