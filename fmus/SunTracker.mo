model SunTracker "Azimuth drive that turns a solar panel towards the sun"
  // Mount axes: +x right, +y up, -z forward. A positive yaw about +y carries -z towards -x, so the
  // azimuth is atan2(-x, -z). The drive is a first-order servo on the shortest way round: when the
  // sun passes behind, the panel goes on over half a turn instead of running back a whole one;
  // yaw is therefore not limited to one turn. Without a sample (zero vector) or with the sun
  // at the zenith there is no azimuth, and the panel stays where it is.
  parameter Real tau(unit="s", min=1e-6) = 0.2 "Time constant of the drive";
  parameter Real minimum_horizontal(unit="1", min=0) = 1e-6
    "Horizontal length of the sun vector below which there is no azimuth";
  input Real sun_mount_x(unit="1", start=0) "Direction of the sun in mount axes, x (right)";
  input Real sun_mount_y(unit="1", start=0) "Direction of the sun in mount axes, y (up)";
  input Real sun_mount_z(unit="1", start=0) "Direction of the sun in mount axes, z (backward)";
  output Real yaw(unit="rad", start=0, fixed=true) "Command to the panel's joint, about +y";
  output Real sun_azimuth(unit="rad") "Azimuth of the sun in (-pi, pi], 0 when there is none";
  output Real sun_elevation(unit="rad") "Elevation of the sun above the mount's x-z plane";
  output Real pointing_error(unit="rad") "Shortest way from yaw to the sun's azimuth, 0 when there is none";
  output Real sun_valid(unit="1") "1 when the sun has an azimuth, else 0";
protected
  Real horizontal(unit="1") "Length of the horizontal part of the sun vector";
  Boolean valid "The sun has an azimuth";
equation
  assert(tau > 0, "tau must be positive");
  horizontal = sqrt(sun_mount_x^2 + sun_mount_z^2);
  valid = horizontal > minimum_horizontal;
  sun_azimuth = if valid then atan2(-sun_mount_x, -sun_mount_z) else 0;
  sun_elevation = atan2(sun_mount_y, horizontal);
  // sine and cosine bring the difference into (-pi, pi] without an event per turn
  pointing_error = if valid then atan2(sin(sun_azimuth - yaw), cos(sun_azimuth - yaw)) else 0;
  der(yaw) = pointing_error/tau;
  sun_valid = if valid then 1 else 0;
end SunTracker;
