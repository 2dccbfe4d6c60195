model AttitudeController "Torque that turns a vehicle to a wanted attitude: proportional to the error, against the rate"
  // torque = stiffness*error - damping*rate, each body axis on its own, limited to +-maximum_torque_nm.
  // error is the sine of the angle times its axis (AttitudeReference), rate the gyroscope's reading,
  // both in body axes. For a moment of inertia J the closed loop of small angles is
  // J*s^2 + damping*s + stiffness: damping = 2*zeta*sqrt(J*stiffness).
  // Without a valid attitude, or with enable = 0, there is no torque.
  parameter Real stiffness_nm(unit="N.m", min=0) = 1000 "Torque per unit of error";
  parameter Real damping_nms(unit="N.m.s", min=0) = 1000 "Torque per unit of angular rate";
  parameter Real maximum_torque_nm(unit="N.m", min=0) = 1000 "Greatest torque about each axis";
  input Real error_x(unit="1", start=0) "Rotation still to make, body x";
  input Real error_y(unit="1", start=0) "Rotation still to make, body y";
  input Real error_z(unit="1", start=0) "Rotation still to make, body z";
  input Real rate_x(unit="rad/s", start=0) "Angular rate, body x";
  input Real rate_y(unit="rad/s", start=0) "Angular rate, body y";
  input Real rate_z(unit="rad/s", start=0) "Angular rate, body z";
  input Real attitude_valid(unit="1", start=1) "1 when the error is a measurement";
  input Real enable(unit="1", start=1) "1 to control, 0 for no torque";
  input Real disable(unit="1", start=0) "1 for no torque, whatever enable says";
  output Real torque_x(unit="N.m") "Commanded torque, body x";
  output Real torque_y(unit="N.m") "Commanded torque, body y";
  output Real torque_z(unit="N.m") "Commanded torque, body z";
  output Real active(unit="1") "1 while torque is commanded, else 0";
protected
  Boolean on "Torque is commanded";
equation
  on = attitude_valid > 0.5 and enable > 0.5 and not disable > 0.5;
  torque_x = if on then max(-maximum_torque_nm, min(maximum_torque_nm, stiffness_nm*error_x - damping_nms*rate_x)) else 0;
  torque_y = if on then max(-maximum_torque_nm, min(maximum_torque_nm, stiffness_nm*error_y - damping_nms*rate_y)) else 0;
  torque_z = if on then max(-maximum_torque_nm, min(maximum_torque_nm, stiffness_nm*error_z - damping_nms*rate_z)) else 0;
  active = if on then 1 else 0;
end AttitudeController;
