model TouchdownSensor "Contact switch of a landing leg"
  // The switch closes above the threshold and opens at or below it. A bouncing leg makes it
  // chatter: feed contact_force_n to a TouchdownDetector where that matters.
  parameter Real force_threshold_n(unit="N", min=0) = 200 "Force that closes the switch";
  input Real contact_force_n(unit="N", start=0) "Normal force of the ground on the leg";
  output Real touchdown(unit="1") "1 while the leg carries more than the threshold, else 0";
equation
  touchdown = if contact_force_n > force_threshold_n then 1 else 0;
end TouchdownSensor;
