model IMUSensor "Inertial measurement unit: specific force, angular rate and attitude of a rigid body"
  // The rigid-body core gives coordinate acceleration, angular velocity (both in world axes) and
  // attitude; an accelerometer at the mounting point r feels none of these directly:
  //   f = R'(a + alpha x r + omega x (omega x r)) - R'g,   gyro = R' omega + bias,
  // R = body to world, so R' brings world vectors into body axes. At rest f = -R'g (the support
  // pushes up), in free fall f = 0. All is computed in body axes, where r is constant.
  // alpha is not available and comes from a first-order filtered derivative of the body rates.
  // Nothing is presented as a measurement that is none: without two acceleration samples the
  // accelerometer reads 0 with sensor_health 0, and a quaternion that is no rotation makes every
  // output 0, attitude_quat included, so that a consumer further on can see it too.

  function toBody "Components in body axes of a vector given in world axes"
    input Real q[4] "Attitude, body to world, wxyz, of unit length";
    input Real v[3] "Components in world axes";
    output Real r[3] "Components in body axes";
  algorithm
    r := {(q[1]^2 + q[2]^2 - q[3]^2 - q[4]^2)*v[1] + 2*(q[2]*q[3] + q[1]*q[4])*v[2] + 2*(q[2]*q[4] - q[1]*q[3])*v[3],
          2*(q[2]*q[3] - q[1]*q[4])*v[1] + (q[1]^2 - q[2]^2 + q[3]^2 - q[4]^2)*v[2] + 2*(q[3]*q[4] + q[1]*q[2])*v[3],
          2*(q[2]*q[4] + q[1]*q[3])*v[1] + 2*(q[3]*q[4] - q[1]*q[2])*v[2] + (q[1]^2 - q[2]^2 - q[3]^2 + q[4]^2)*v[3]};
  end toBody;

  parameter Real mount_offset_x(unit="m") = 0 "Mounting point from the centre of mass, body x";
  parameter Real mount_offset_y(unit="m") = 0 "Mounting point from the centre of mass, body y";
  parameter Real mount_offset_z(unit="m") = 0 "Mounting point from the centre of mass, body z";
  parameter Real accel_bias_x(unit="m/s2") = 0 "Bias of the accelerometer, x";
  parameter Real accel_bias_y(unit="m/s2") = 0 "Bias of the accelerometer, y";
  parameter Real accel_bias_z(unit="m/s2") = 0 "Bias of the accelerometer, z";
  parameter Real gyro_bias_x(unit="rad/s") = 0 "Bias of the gyroscope, x";
  parameter Real gyro_bias_y(unit="rad/s") = 0 "Bias of the gyroscope, y";
  parameter Real gyro_bias_z(unit="rad/s") = 0 "Bias of the gyroscope, z";
  parameter Real accel_scale_factor(unit="1") = 1 "Scale factor of the accelerometer, before its bias";
  parameter Real quaternion_epsilon(unit="1", min=0) = 1e-12 "A squared norm of at most this is no attitude";
  parameter Real angular_accel_filter_time_constant_s(unit="s", min=1e-6) = 0.02
    "Time constant of the angular acceleration's filtered derivative";

  input Real raw_acceleration_x(unit="m/s2", start=0) "Coordinate acceleration of the centre of mass, world x";
  input Real raw_acceleration_y(unit="m/s2", start=0) "Coordinate acceleration of the centre of mass, world y";
  input Real raw_acceleration_z(unit="m/s2", start=0) "Coordinate acceleration of the centre of mass, world z";
  input Real raw_sample_valid(unit="1", start=0) "1 once the acceleration is a measurement";
  input Real raw_angvel_x(unit="rad/s", start=0) "Angular velocity, world x";
  input Real raw_angvel_y(unit="rad/s", start=0) "Angular velocity, world y";
  input Real raw_angvel_z(unit="rad/s", start=0) "Angular velocity, world z";
  input Real raw_quat_w(unit="1", start=1) "Attitude quaternion, body to world, w";
  input Real raw_quat_x(unit="1", start=0) "Attitude quaternion, body to world, x";
  input Real raw_quat_y(unit="1", start=0) "Attitude quaternion, body to world, y";
  input Real raw_quat_z(unit="1", start=0) "Attitude quaternion, body to world, z";
  input Real gravity_world_x(unit="m/s2", start=0) "Gravity at the body, world x";
  input Real gravity_world_y(unit="m/s2", start=0) "Gravity at the body, world y";
  input Real gravity_world_z(unit="m/s2", start=0) "Gravity at the body, world z";

  output Real coordinate_accel_local_x(unit="m/s2") "True coordinate acceleration of the mounting point, body x";
  output Real coordinate_accel_local_y(unit="m/s2") "True coordinate acceleration of the mounting point, body y";
  output Real coordinate_accel_local_z(unit="m/s2") "True coordinate acceleration of the mounting point, body z";
  output Real specific_force_x(unit="m/s2") "Accelerometer reading, body x";
  output Real specific_force_y(unit="m/s2") "Accelerometer reading, body y";
  output Real specific_force_z(unit="m/s2") "Accelerometer reading, body z";
  output Real gyro_x(unit="rad/s") "Gyroscope reading, body x";
  output Real gyro_y(unit="rad/s") "Gyroscope reading, body y";
  output Real gyro_z(unit="rad/s") "Gyroscope reading, body z";
  output Real sensor_health(unit="1") "1 when all outputs are measurements, else 0";
  output Real attitude_quat_w(unit="1") "Attitude of unit length, body to world, w";
  output Real attitude_quat_x(unit="1") "Attitude of unit length, body to world, x";
  output Real attitude_quat_y(unit="1") "Attitude of unit length, body to world, y";
  output Real attitude_quat_z(unit="1") "Attitude of unit length, body to world, z";
  output Real attitude_quat_valid(unit="1") "1 when the quaternion is an attitude, else 0";
protected
  parameter Real r[3](each unit="m") = {mount_offset_x, mount_offset_y, mount_offset_z}
    "Mounting point from the centre of mass, body axes";
  parameter Real accel_bias[3](each unit="m/s2") = {accel_bias_x, accel_bias_y, accel_bias_z}
    "Bias of the accelerometer";
  parameter Real gyro_bias[3](each unit="rad/s") = {gyro_bias_x, gyro_bias_y, gyro_bias_z}
    "Bias of the gyroscope";
  Real norm2(unit="1") "Squared norm of the raw quaternion";
  Boolean attitude_ok "The raw quaternion is an attitude";
  Boolean healthy "Accelerations can be computed";
  Real q[4](each unit="1") "Attitude of unit length, zero when there is none";
  Real omega[3](each unit="rad/s") "Angular velocity, body axes";
  Real omega_filtered[3](each unit="rad/s") "Low-pass filtered angular velocity, body axes";
  Real alpha[3](each unit="rad/s2") "Angular acceleration, body axes";
  Real lever[3](each unit="m/s2") "Acceleration of the mounting point relative to the centre of mass";
  Real accel[3](each unit="m/s2") "Coordinate acceleration of the mounting point, body axes";
  Real force[3](each unit="m/s2") "Accelerometer reading, body axes";
  Real gyro[3](each unit="rad/s") "Gyroscope reading, body axes";
initial equation
  omega_filtered = omega;
equation
  assert(angular_accel_filter_time_constant_s > 0, "angular_accel_filter_time_constant_s must be positive");
  norm2 = raw_quat_w^2 + raw_quat_x^2 + raw_quat_y^2 + raw_quat_z^2;
  attitude_ok = norm2 > quaternion_epsilon;
  healthy = attitude_ok and raw_sample_valid > 0.5;
  q = if attitude_ok then {raw_quat_w, raw_quat_x, raw_quat_y, raw_quat_z}/sqrt(norm2) else zeros(4);

  omega = toBody(q, {raw_angvel_x, raw_angvel_y, raw_angvel_z});
  alpha = if healthy then (omega - omega_filtered)/angular_accel_filter_time_constant_s else zeros(3);
  der(omega_filtered) = alpha;
  // The first valid sample starts the filter: a spin that is there from the start is no jerk.
  when healthy then
    reinit(omega_filtered, omega);
  end when;

  lever = cross(alpha, r) + cross(omega, cross(omega, r));
  accel = if healthy then toBody(q, {raw_acceleration_x, raw_acceleration_y, raw_acceleration_z}) + lever else zeros(3);
  force = if healthy then
    accel_scale_factor*(accel - toBody(q, {gravity_world_x, gravity_world_y, gravity_world_z})) + accel_bias
    else zeros(3);
  gyro = if attitude_ok then omega + gyro_bias else zeros(3);

  {coordinate_accel_local_x, coordinate_accel_local_y, coordinate_accel_local_z} = accel;
  {specific_force_x, specific_force_y, specific_force_z} = force;
  {gyro_x, gyro_y, gyro_z} = gyro;
  {attitude_quat_w, attitude_quat_x, attitude_quat_y, attitude_quat_z} = q;
  sensor_health = if healthy then 1 else 0;
  attitude_quat_valid = if attitude_ok then 1 else 0;
end IMUSensor;
