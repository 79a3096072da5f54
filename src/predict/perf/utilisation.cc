#include "predict/perf/utilisation.h"

namespace systole {

Result<double> utilisation(Flops model, Seconds time, FlopRate rate, std::string_view rate_is) {
  if (!(time.count() > 0)) return error(ErrorKind::invalid, "no utilisation: the time is {} s", time.count());
  if (!(rate.count() > 0)) return error(ErrorKind::invalid, "no utilisation: the {} is {}", rate_is, rate.count());
  const FlopRate achieved = model / time;
  const double ratio = achieved / rate;
  if (ratio <= 1) return ratio;
  return error(ErrorKind::invalid,
               "utilisation withheld: {} model FLOPs in {} is {}, above the {} of {}; one of the two is wrong",
               with_commas(model.count()), to_string(time), to_string(achieved), rate_is, to_string(rate))
      .hinted("calibrate again on an idle machine, or check the time");
}

}  // namespace systole
