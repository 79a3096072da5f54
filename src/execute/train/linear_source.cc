#include <cmath>

#include "execute/train/source.h"
#include "ground/base/hash.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

// Every number is a pure function of (data.seed, purpose, row, index).
class LinearSource : public BatchSource {
 public:
  LinearSource(const Workload& workload, std::int64_t batch_rows, bool held_out, bool endless, std::int64_t first)
      : key_(hash64("systole linear data", static_cast<std::uint64_t>(workload.data.seed))),
        inputs_(workload.model.as<MlpSpec>().inputs),
        outputs_(workload.model.as<MlpSpec>().outputs),
        noise_(workload.data.noise),
        offset_(held_out ? workload.data.rows : 0),
        rows_(held_out ? workload.data.held_out_rows : workload.data.rows),
        endless_(endless),
        at_(first),
        x_(static_cast<std::size_t>(batch_rows * inputs_)),
        y_(static_cast<std::size_t>(batch_rows * outputs_)),
        weights_(static_cast<std::size_t>((inputs_ + 1) * outputs_)) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(inputs_));
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] = scale * symmetric(kWeights, 0, i);
    batch_.inputs = {{"x", std::as_bytes(std::span(x_)), inputs_ * 4},
                     {"y", std::as_bytes(std::span(y_)), outputs_ * 4}};
  }

  Result<const StepBatch*> next() override {
    const std::int64_t capacity = static_cast<std::int64_t>(x_.size()) / inputs_;
    if (!endless_ && at_ >= rows_) return nullptr;
    batch_.rows = endless_ ? capacity : std::min(capacity, rows_ - at_);
    for (std::int64_t r = 0; r < batch_.rows; ++r) make_row(r, offset_ + (at_ + r) % rows_);
    at_ += batch_.rows;
    batch_.label_count = batch_.rows;
    return &batch_;
  }

  Node cursor() const override { return Node::map({{"row", at_}}); }

 private:
  enum Purpose : std::uint64_t { kWeights, kX, kNoise };

  // Uniform in [-1, 1).
  double symmetric(Purpose purpose, std::int64_t row, std::size_t index) const {
    const std::uint64_t high = (static_cast<std::uint64_t>(row) << 2) | purpose;
    return 2.0 * static_cast<double>(uniform_f32(philox(key_, philox_counter(index, high))[0])) - 1.0;
  }

  void make_row(std::int64_t r, std::int64_t row) {
    float* x = x_.data() + r * inputs_;
    for (std::int64_t i = 0; i < inputs_; ++i)
      x[i] = static_cast<float>(symmetric(kX, row, static_cast<std::size_t>(i)));
    for (std::int64_t o = 0; o < outputs_; ++o) {
      double sum = weights_[static_cast<std::size_t>(inputs_ * outputs_ + o)];
      for (std::int64_t i = 0; i < inputs_; ++i) sum += x[i] * weights_[static_cast<std::size_t>(i * outputs_ + o)];
      // A uniform number with the requested standard deviation.
      sum += noise_ * std::sqrt(3.0) * symmetric(kNoise, row, static_cast<std::size_t>(o));
      y_[static_cast<std::size_t>(r * outputs_ + o)] = static_cast<float>(sum);
    }
  }

  std::uint64_t key_;
  std::int64_t inputs_, outputs_;
  double noise_;
  std::int64_t offset_, rows_;
  bool endless_;
  std::int64_t at_;
  std::vector<float> x_, y_;
  std::vector<double> weights_;  // [inputs, outputs], then the bias
  StepBatch batch_;
};

}  // namespace

Result<std::unique_ptr<BatchSource>> open_linear_source(const Workload& workload, std::int64_t batch_rows,
                                                        bool held_out, bool endless, const Node& start) {
  std::int64_t first = 0;
  if (!start.is_null()) first = TRY(TRY(start.get("row"))->as_int(0));
  return std::unique_ptr<BatchSource>(std::make_unique<LinearSource>(workload, batch_rows, held_out, endless, first));
}

}  // namespace systole
