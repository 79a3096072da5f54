#include "operate/launch/preemption.h"

#include <condition_variable>
#include <fstream>
#include <mutex>

namespace systole {
namespace {

constexpr const char* kGoogle = "http://metadata.google.internal/computeMetadata/v1/instance/preempted";

bool is_googles() {
  std::ifstream file("/sys/class/dmi/id/product_name");
  std::string name;
  return std::getline(file, name) && name.starts_with("Google");
}

}  // namespace

Result<std::unique_ptr<PreemptionWatch>> PreemptionWatch::start(const PreemptionOptions& options) {
  std::unique_ptr<PreemptionWatch> watch(new PreemptionWatch());  // the constructor is private
  const std::string where = options.where.empty() && is_googles() ? kGoogle : options.where;
  if (where.empty() || where == "off") return watch;
  HttpPlace place = TRY(parse_http(where));
  watch->thread_ = std::jthread([watch = watch.get(), place = std::move(place), every = options.every](
                                    const std::stop_token& stop) { watch->ask(place, every, stop); });
  return watch;
}

PreemptionWatch::~PreemptionWatch() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

// No answer is no announcement: it asks again.
void PreemptionWatch::ask(const HttpPlace& place, Seconds every, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested() && !announced_) {
    const Result<HttpAnswer> answer =
        http_get(place, {{"Metadata-Flavor", "Google"}}, deadline_after(std::min(every, Seconds(1.0))));
    if (answer.ok() && answer->status == 200 && answer->body.starts_with("TRUE")) announced_ = true;
    wake.wait_for(lock, stop, std::chrono::duration<double>(every.count()), [this] { return announced_.load(); });
  }
}

}  // namespace systole
