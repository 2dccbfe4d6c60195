model AttitudeReference "Attitude error between a vehicle's thrust axis and a wanted tilt"
  // The thrust axis is body +y. The wanted direction in world axes (y up) is of unit length for
  // any tilt, leans by exactly desired_tilt_x towards +z when the other tilt is 0, and by exactly
  // desired_tilt_z towards -x when desired_tilt_x is 0 (a rotation about x and one about z).
  // The error is the cross product of thrust axis and wanted direction in body axes: the axis of
  // the shortest way back, with the sine of the angle. It vanishes at half a turn too; there
  // alignment is -1. A torque command is a gain times the error minus a gain times the body rate.
  // The accelerometer is left out on purpose: under thrust it points along the engine, not up.

  function toBody "Components in body axes of a vector given in world axes"
    input Real q[4] "Attitude, body to world, wxyz, of unit length";
    input Real v[3] "Components in world axes";
    output Real r[3] "Components in body axes";
  algorithm
    r := {(q[1]^2 + q[2]^2 - q[3]^2 - q[4]^2)*v[1] + 2*(q[2]*q[3] + q[1]*q[4])*v[2] + 2*(q[2]*q[4] - q[1]*q[3])*v[3],
          2*(q[2]*q[3] - q[1]*q[4])*v[1] + (q[1]^2 - q[2]^2 + q[3]^2 - q[4]^2)*v[2] + 2*(q[3]*q[4] + q[1]*q[2])*v[3],
          2*(q[2]*q[4] + q[1]*q[3])*v[1] + 2*(q[3]*q[4] - q[1]*q[2])*v[2] + (q[1]^2 - q[2]^2 - q[3]^2 + q[4]^2)*v[3]};
  end toBody;

  parameter Real quaternion_epsilon(unit="1", min=0) = 1e-12 "A squared norm of at most this is no attitude";
  input Real attitude_quat_w(unit="1", start=1) "Measured attitude, body to world, w";
  input Real attitude_quat_x(unit="1", start=0) "Measured attitude, body to world, x";
  input Real attitude_quat_y(unit="1", start=0) "Measured attitude, body to world, y";
  input Real attitude_quat_z(unit="1", start=0) "Measured attitude, body to world, z";
  input Real desired_tilt_x(unit="rad", start=0) "Wanted lean of the thrust axis towards world +z";
  input Real desired_tilt_z(unit="rad", start=0) "Wanted lean of the thrust axis towards world -x";
  output Real error_x(unit="1") "Rotation still to make, body x (sine of the angle times the axis)";
  output Real error_y(unit="1") "Rotation still to make, body y (always 0: a direction says nothing about roll)";
  output Real error_z(unit="1") "Rotation still to make, body z";
  output Real estimated_up_x(unit="1") "World up in body axes, x";
  output Real estimated_up_y(unit="1") "World up in body axes, y";
  output Real estimated_up_z(unit="1") "World up in body axes, z";
  output Real alignment(unit="1") "Cosine of the angle between thrust axis and wanted direction, 0 without attitude";
  output Real attitude_valid(unit="1") "1 when the measured attitude is a rotation; else all outputs are 0";
protected
  Real norm2(unit="1") "Squared norm of the measured attitude";
  Boolean attitude_ok "The measured attitude is a rotation";
  Real q[4](each unit="1") "Attitude of unit length, zero when there is none";
  Real wanted[3](each unit="1") "Wanted thrust direction, body axes";
equation
  norm2 = attitude_quat_w^2 + attitude_quat_x^2 + attitude_quat_y^2 + attitude_quat_z^2;
  attitude_ok = norm2 > quaternion_epsilon;
  // A zero quaternion makes toBody return zeros, and with that every output.
  q = if attitude_ok then
    {attitude_quat_w, attitude_quat_x, attitude_quat_y, attitude_quat_z}/sqrt(norm2) else zeros(4);
  wanted = toBody(q, {-sin(desired_tilt_z)*cos(desired_tilt_x), cos(desired_tilt_z)*cos(desired_tilt_x),
    sin(desired_tilt_x)});
  {error_x, error_y, error_z} = cross({0.0, 1.0, 0.0}, wanted);
  {estimated_up_x, estimated_up_y, estimated_up_z} = toBody(q, {0.0, 1.0, 0.0});
  alignment = wanted[2];
  attitude_valid = if attitude_ok then 1 else 0;
end AttitudeReference;
