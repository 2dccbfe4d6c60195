model DescentController "Powered descent of a lander on its altimeter: thrust for a soft touchdown"
  // Above the legs' contact height h is the height still to go. The wanted descent speed is that
  // of a constant deceleration to touchdown_speed_mps, with a ceiling:
  //   w = min(maximum_descent_speed_mps, sqrt(touchdown_speed_mps^2 + 2*braking_deceleration_mps2*h))
  // and the thrust is
  //   mass*(gravity + feedforward - rate_gain_per_s*(altitude_rate + w)),
  // limited to minimum_thrust_n .. maximum_thrust_n. The feedforward is the acceleration of the
  // profile itself at the present rate, -altitude_rate*braking_deceleration_mps2/w, where w follows
  // the height; without it the vehicle would trail the profile and land too fast.
  // Without a valid altitude and rate nothing is assumed about the ground: the engine carries
  // blind_thrust_fraction of the weight. engine_cut takes precedence over everything.
  parameter Real contact_altitude_m(unit="m") = 0 "Altimeter reading when the legs touch the ground";
  parameter Real touchdown_speed_mps(unit="m/s", min=0.01) = 0.4 "Descent speed at the ground";
  parameter Real braking_deceleration_mps2(unit="m/s2", min=0) = 0.6 "Deceleration of the profile";
  parameter Real maximum_descent_speed_mps(unit="m/s", min=0) = 10 "Ceiling of the descent speed";
  parameter Real rate_gain_per_s(unit="1/s", min=0) = 1.5 "Acceleration per unit of speed error";
  parameter Real minimum_thrust_n(unit="N", min=0) = 0 "Least thrust of the burning engine";
  parameter Real maximum_thrust_n(unit="N", min=0) = 60000 "Greatest thrust";
  parameter Real blind_thrust_fraction(unit="1", min=0) = 0.9 "Share of the weight carried without altitude";
  input Real altitude_m(unit="m", start=0) "Measured altitude";
  input Real altitude_rate_mps(unit="m/s", start=0) "Measured rate of the altitude, positive upwards";
  input Real altitude_valid(unit="1", start=0) "1 when the altitude is a measurement";
  input Real altitude_rate_valid(unit="1", start=1) "1 when the rate is a measurement";
  input Real vehicle_mass_kg(unit="kg", start=2000) "Mass of the vehicle";
  input Real gravity_mps2(unit="m/s2", start=1.62) "Gravity, positive downwards";
  input Real engine_cut(unit="1", start=0) "1 cuts the engine";
  output Real thrust_n(unit="N") "Commanded thrust";
  output Real throttle(unit="1") "Commanded thrust over greatest thrust";
  output Real wanted_rate_mps(unit="m/s") "Wanted rate of the altitude, 0 while there is none";
  output Real tracking(unit="1") "1 while the descent profile is flown, else 0";
  output Real saturated(unit="1") "1 while the wanted thrust is out of the engine's limits, else 0";
protected
  Boolean measured "Altitude and rate are measurements";
  Boolean cut "The engine is cut";
  Real height(unit="m") "Height still to go";
  Real braking_speed(unit="m/s") "Speed from which the deceleration ends at touchdown_speed_mps";
  Real speed(unit="m/s") "Wanted descent speed";
  Real feedforward(unit="m/s2") "Acceleration of the profile at the present rate";
  Real wanted(unit="N") "Thrust before the limits";
equation
  assert(maximum_thrust_n > 0 and minimum_thrust_n <= maximum_thrust_n, "the thrust limits leave no thrust");
  assert(touchdown_speed_mps > 0, "touchdown_speed_mps must be positive: a profile that ends at rest never arrives");
  measured = altitude_valid > 0.5 and altitude_rate_valid > 0.5;
  cut = engine_cut > 0.5;
  height = max(0, altitude_m - contact_altitude_m);
  braking_speed = sqrt(touchdown_speed_mps^2 + 2*braking_deceleration_mps2*height);
  speed = min(maximum_descent_speed_mps, braking_speed);
  // A vehicle faster than the profile needs more than the profile's own deceleration, but not
  // without bound: at twice the wanted speed the rate gain does the rest.
  feedforward = if height > 0 and braking_speed < maximum_descent_speed_mps then
    braking_deceleration_mps2*min(2, max(0, -altitude_rate_mps/braking_speed)) else 0;
  wanted = vehicle_mass_kg*(if measured then
    gravity_mps2 + feedforward - rate_gain_per_s*(altitude_rate_mps + speed) else blind_thrust_fraction*gravity_mps2);
  thrust_n = if cut then 0 else min(maximum_thrust_n, max(minimum_thrust_n, wanted));
  throttle = thrust_n/maximum_thrust_n;
  wanted_rate_mps = if measured then -speed else 0;
  tracking = if measured and not cut then 1 else 0;
  saturated = if not cut and (wanted > maximum_thrust_n or wanted < minimum_thrust_n) then 1 else 0;
end DescentController;
