model TouchdownDetector "Touchdown from a contact force: hysteresis, debounce and latch"
  // 1. Hysteresis: loaded above force_on_n, unloaded below force_off_n, in between as it was.
  // 2. Debounce: the load must last debounce_s without a break; a bounce starts the wait again.
  // 3. Latch: landed stays 1 until reset, so an engine that was cut is not lit again by a rebound.
  // touchdown_speed_mps is the descent speed with which the vehicle arrived at its first load. The
  // sample that shows the load is one after the impact, so the speed is kept for one sample_period_s.
  parameter Real force_on_n(unit="N", min=0) = 200 "Force above which the leg counts as loaded";
  parameter Real force_off_n(unit="N", min=0) = 50 "Force below which the leg counts as unloaded";
  parameter Real debounce_s(unit="s", min=0) = 0.05 "Time for which the load must last";
  parameter Real sample_period_s(unit="s", min=1e-6) = 1/240 "Period in which the speed is remembered";
  input Real contact_force_n(unit="N", start=0) "Normal force of the ground on the leg";
  input Real vertical_velocity_mps(unit="m/s", start=0) "Velocity of the vehicle, positive upwards";
  input Real reset(unit="1", start=0) "1 releases the latch";
  output Real contact(unit="1") "1 while the leg is loaded (after the hysteresis), else 0";
  output Real touchdown(unit="1") "1 while the load has lasted debounce_s, else 0";
  output Real landed(unit="1") "1 from the first touchdown until reset (the latch), else 0";
  output Real engine_cut(unit="1") "1 to cut the engine: the same as landed";
  output Real touchdown_time_s(unit="s", start=-1) "Time of the latest landing, -1 before the first";
  output Real touchdown_speed_mps(unit="m/s", start=0, fixed=true) "Descent speed just before the first load, 0 until then";
  output Integer contact_count(start=0, fixed=true) "How often the leg was loaded: 1 + the number of bounces";
protected
  Boolean loaded(start=false, fixed=true) "State of the hysteresis";
  Boolean settled "The load has lasted";
  Boolean latched(start=false, fixed=true) "State of the latch";
  Real loaded_since(unit="s", start=0) "Time at which the present load began";
  discrete Real last(unit="m/s", start=0, fixed=true) "Velocity at the last sample";
  discrete Real before(unit="m/s", start=0, fixed=true) "Velocity at the sample before it";
equation
  assert(force_off_n <= force_on_n, "force_off_n must not be above force_on_n");
  loaded = contact_force_n > force_on_n or (pre(loaded) and contact_force_n >= force_off_n);
  when sample(0, sample_period_s) then
    last = vertical_velocity_mps;
    before = pre(last);
  end when;
  // The larger of the two: the load may show between samples.
  when loaded then
    touchdown_speed_mps = if pre(contact_count) > 0 then pre(touchdown_speed_mps)
      else max(0, max(-before, -last));
  end when;
  contact_count = pre(contact_count) + (if edge(loaded) then 1 else 0);
  // initial() counts a vehicle that starts on its legs as loaded since the start.
  when {initial(), loaded} then
    loaded_since = time;
  end when;
  settled = loaded and time >= loaded_since + debounce_s;
  latched = (settled or pre(latched)) and not reset > 0.5;
  when {initial(), latched} then
    touchdown_time_s = if latched then time else -1;
  end when;
  contact = if loaded then 1 else 0;
  touchdown = if settled then 1 else 0;
  landed = if latched then 1 else 0;
  engine_cut = landed;
end TouchdownDetector;
