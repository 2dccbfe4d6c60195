model Balloon "Envelope of light gas: buoyancy and drag in an atmosphere"
  // Gives the force of the medium only; weight is the rigid-body core's. In vacuum (rho0 = 0) the
  // force is 0 and the balloon falls. Both facts of the place, rho0 and gravity, come from the
  // stage: buoyancy has to use the same gravity as the weight.
  // Atmosphere: linear temperature T = t0 - lapse*h, hydrostatic, so rho = rho0*(T/t0)^(n - 1)
  // with n = gravity*M/(R*lapse); pressure_exponent is n and its default Earth's (ISO 2533, 5.2559).
  // Gas: at the temperature of the air after a lag, volume in proportion to the temperature.
  // Drag: a sphere of that volume in the vertical wind of its own motion.
  parameter Real mass(unit="kg", min=0) = 4.5 "Mass of balloon and payload, for free_lift only";
  parameter Real maxVolume(unit="m3", min=0) = 6 "Volume of the gas at the temperature t0";
  parameter Real initVolume(unit="m3", min=0) = 4 "Volume of the gas at the start";
  parameter Real dragCoeff(unit="1", min=0) = 0.47 "Drag coefficient of a sphere";
  parameter Real tau(unit="s", min=1e-6) = 3 "Time constant of the gas volume";
  parameter Real t0(unit="K", min=1) = 288.15 "Temperature of the air at height 0";
  parameter Real lapse(unit="K/m") = 0.0065 "Fall of the air's temperature with height";
  parameter Real pressure_exponent(unit="1") = 5.2559 "Exponent of the pressure ratio";
  input Real rho0(unit="kg/m3", start=0) "Density of the air at height 0, 0 for vacuum";
  input Real gravity(unit="m/s2", start=1.62) "Gravity at the balloon";
  input Real height(unit="m", start=0) "Height of the balloon";
  input Real velocity(unit="m/s", start=0) "Vertical velocity of the balloon, positive upwards";
  output Real temperature(unit="K") "Temperature of the air at the balloon, not below 1 K";
  output Real airDensity(unit="kg/m3") "Density of the air at the balloon, 0 above the atmosphere";
  output Real volume(unit="m3") "Volume of the gas";
  output Real buoyancy(unit="N") "Weight of the displaced air";
  output Real drag(unit="N") "Drag, positive when it acts downwards (upward motion)";
  output Real netForce(unit="N") "Force of the air on the balloon, positive upwards";
  output Real free_lift(unit="N") "Buoyancy minus the weight of mass: positive rises";
protected
  constant Real pi(unit="1") = 3.14159265358979323846 "Circle number";
initial equation
  volume = initVolume;
equation
  assert(tau > 0, "tau must be positive");
  // The linear profile ends at t0/lapse (44 km): there the air is cold and empty, not negative.
  temperature = max(t0 - lapse*height, 1);
  airDensity = rho0*(t0/temperature)*max(1 - lapse*height/t0, 0)^pressure_exponent;
  tau*der(volume) = maxVolume*temperature/t0 - volume;
  buoyancy = airDensity*volume*gravity;
  drag = 0.5*airDensity*dragCoeff*pi*(3*volume/(4*pi))^(2/3)*velocity*abs(velocity);
  netForce = buoyancy - drag;
  free_lift = buoyancy - mass*gravity;
end Balloon;
