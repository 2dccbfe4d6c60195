model Altimeter "Radar or laser altimeter: height above the ground and its rate from one ray"
  // The ray query gives a slant distance d along the unit direction u (world axes, y up). Over
  // level ground the height of the sensor is d*c with the vertical projection c = -u_y, and
  //   d(d*c)/dt = d' c - d u_y',   u' = omega x u,
  // so a vehicle that only rotates is not reported as climbing. d' is a filtered derivative.
  // A miss is never an altitude: without a hit, too near, beam too oblique, or no attitude, all
  // readings are 0 and range_valid is 0; nothing of an earlier hit is kept. The derivative starts
  // at the first hit, so a hit after a miss is no jump, and range_rate_valid waits until it has settled.

  function toWorld "Components in world axes of a vector given in body axes"
    input Real q[4] "Attitude, body to world, wxyz, of unit length";
    input Real v[3] "Components in body axes";
    output Real r[3] "Components in world axes";
  algorithm
    r := {(q[1]^2 + q[2]^2 - q[3]^2 - q[4]^2)*v[1] + 2*(q[2]*q[3] - q[1]*q[4])*v[2] + 2*(q[2]*q[4] + q[1]*q[3])*v[3],
          2*(q[2]*q[3] + q[1]*q[4])*v[1] + (q[1]^2 - q[2]^2 + q[3]^2 - q[4]^2)*v[2] + 2*(q[3]*q[4] - q[1]*q[2])*v[3],
          2*(q[2]*q[4] - q[1]*q[3])*v[1] + 2*(q[3]*q[4] + q[1]*q[2])*v[2] + (q[1]^2 - q[2]^2 - q[3]^2 + q[4]^2)*v[3]};
  end toWorld;

  parameter Real range_filter_time_constant_s(unit="s", min=1e-6) = 0.02
    "Time constant of the distance's filtered derivative";
  parameter Real ray_direction_local_x(unit="1") = 0 "Direction of the ray in body axes, x (any length but 0)";
  parameter Real ray_direction_local_y(unit="1") = -1 "Direction of the ray in body axes, y";
  parameter Real ray_direction_local_z(unit="1") = 0 "Direction of the ray in body axes, z";
  parameter Real minimum_vertical_projection(unit="1", min=0, max=1) = 0.05
    "Cosine between ray and nadir below which the ray is no altitude";
  parameter Real minimum_range_m(unit="m", min=0) = 1e-3 "Distance below which a hit is not accepted";
  parameter Real quaternion_epsilon(unit="1", min=0) = 1e-12 "A squared norm of at most this is no attitude";
  parameter Real rate_settling_time_constants(unit="1", min=0) = 3
    "How many filter time constants after a hit the rate counts as valid";

  input Real ray_distance_m(unit="m", start=0) "Distance from the sensor to the hit, along the ray";
  input Real ray_hit_valid(unit="1", start=0) "1 when the ray hit something";
  input Real ray_hit_position_x(unit="m", start=0) "Point of the hit, world x";
  input Real ray_hit_position_y(unit="m", start=0) "Point of the hit, world y";
  input Real ray_hit_position_z(unit="m", start=0) "Point of the hit, world z";
  input Real ray_sample_time(unit="s", start=0) "Time of the ray query";
  input Real mount_local_x(unit="m", start=0) "Position of the sensor on the vehicle, body x";
  input Real mount_local_y(unit="m", start=0) "Position of the sensor on the vehicle, body y";
  input Real mount_local_z(unit="m", start=0) "Position of the sensor on the vehicle, body z";
  input Real attitude_quat_w(unit="1", start=1) "Measured attitude, body to world, w";
  input Real attitude_quat_x(unit="1", start=0) "Measured attitude, body to world, x";
  input Real attitude_quat_y(unit="1", start=0) "Measured attitude, body to world, y";
  input Real attitude_quat_z(unit="1", start=0) "Measured attitude, body to world, z";
  input Real angular_velocity_local_x(unit="rad/s", start=0) "Measured angular rate, body x";
  input Real angular_velocity_local_y(unit="rad/s", start=0) "Measured angular rate, body y";
  input Real angular_velocity_local_z(unit="rad/s", start=0) "Measured angular rate, body z";

  output Real range_m(unit="m") "Height of the sensor above the hit: distance times vertical projection";
  output Real range_rate_mps(unit="m/s") "Rate of range_m, positive upwards";
  output Real range_valid(unit="1") "1 when range_m is an altitude, else 0";
  output Real range_confidence(unit="1") "1 for a vertical ray, falling to 0 at minimum_vertical_projection";
  output Real range_rate_valid(unit="1") "1 when range_rate_mps has settled, else 0";
  output Real vehicle_position_x(unit="m") "Position of the vehicle from the hit, world x";
  output Real vehicle_position_y(unit="m") "Position of the vehicle from the hit, world y";
  output Real vehicle_position_z(unit="m") "Position of the vehicle from the hit, world z";
  output Real sample_time_s(unit="s") "Time of the ray query of this reading";
  output Real vertical_projection(unit="1") "Cosine between ray and nadir, 0 for a ray that points upwards";
  output Real ray_direction_nav_y(unit="1") "Vertical component of the ray's direction, world y";
protected
  parameter Real length(unit="1") = sqrt(ray_direction_local_x^2 + ray_direction_local_y^2 + ray_direction_local_z^2)
    "Length of the authored direction";
  Real norm2(unit="1") "Squared norm of the measured attitude";
  Boolean attitude_ok "The measured attitude is a rotation";
  Boolean returned "The ray came back from far enough";
  Boolean valid "The distance is an altitude";
  Real q[4](each unit="1") "Attitude of unit length, zero when there is none";
  Real u[3](each unit="1") "Direction of the ray, world axes";
  Real omega[3](each unit="rad/s") "Angular rate, world axes";
  Real mount[3](each unit="m") "Position of the sensor from the vehicle's origin, world axes";
  Real distance_filtered(unit="m") "Low-pass filtered distance";
  Real distance_rate(unit="m/s") "Filtered derivative of the distance";
  Real returned_since(unit="s", start=0) "Time of the first hit after the latest miss";
  Real position[3](each unit="m") "Position of the vehicle, world axes";
initial equation
  distance_filtered = ray_distance_m;
equation
  assert(range_filter_time_constant_s > 0, "range_filter_time_constant_s must be positive");
  assert(length > 0, "ray_direction_local must not be the zero vector");
  norm2 = attitude_quat_w^2 + attitude_quat_x^2 + attitude_quat_y^2 + attitude_quat_z^2;
  attitude_ok = norm2 > quaternion_epsilon;
  q = if attitude_ok then
    {attitude_quat_w, attitude_quat_x, attitude_quat_y, attitude_quat_z}/sqrt(norm2) else zeros(4);
  u = toWorld(q, {ray_direction_local_x, ray_direction_local_y, ray_direction_local_z}/length);
  omega = toWorld(q, {angular_velocity_local_x, angular_velocity_local_y, angular_velocity_local_z});
  mount = toWorld(q, {mount_local_x, mount_local_y, mount_local_z});
  ray_direction_nav_y = u[2];
  vertical_projection = max(0, -u[2]);

  returned = ray_hit_valid > 0.5 and ray_distance_m >= minimum_range_m;
  valid = returned and attitude_ok and vertical_projection > 0 and vertical_projection >= minimum_vertical_projection;

  distance_rate = if returned then (ray_distance_m - distance_filtered)/range_filter_time_constant_s else 0;
  der(distance_filtered) = distance_rate;
  when returned then
    reinit(distance_filtered, ray_distance_m);
  end when;
  when {initial(), returned} then
    returned_since = time;
  end when;

  range_m = if valid then ray_distance_m*vertical_projection else 0;
  range_rate_mps = if valid then
    distance_rate*vertical_projection - ray_distance_m*(omega[3]*u[1] - omega[1]*u[3]) else 0;
  position = if valid then
    {ray_hit_position_x, ray_hit_position_y, ray_hit_position_z} - ray_distance_m*u - mount else zeros(3);
  {vehicle_position_x, vehicle_position_y, vehicle_position_z} = position;
  sample_time_s = ray_sample_time;
  range_valid = if valid then 1 else 0;
  range_confidence = if valid then
    min(1, (vertical_projection - minimum_vertical_projection)/max(1 - minimum_vertical_projection, 1e-6)) else 0;
  range_rate_valid =
    if valid and time >= returned_since + rate_settling_time_constants*range_filter_time_constant_s then 1 else 0;
end Altimeter;
