#pragma once
// What calibrate() measures for plans of serving: products of few rows with weights, as a server's device makes them, in
// the last cache and behind it, since a decode reads each weight once; and how fast one thread draws tokens.

#include <vector>

#include "execute/calibrate/calibrate.h"

namespace systole {

// Facts, for each type of weights (f32, and i8 where the device has its products), side of their square, and number of
// rows:
//   serving.product.f32.1024.16         weights a second, of 96 MiB in turn
//   serving.product.f32.1024.16.cached  the same of 8 MiB
//   serving.draw                        logits a second from which a token is drawn at temperature 1
// `each`: time for one figure. `call`: to start a kernel, which the rates do not contain. Errors: of the device.
Result<std::vector<CalibratedFact>> measure_serving(Device& device, Clock& clock, Seconds each, Seconds call);

}  // namespace systole
