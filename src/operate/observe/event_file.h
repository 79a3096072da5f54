#pragma once
// The event file of one process. `add` copies the event into a ring that was allocated when the file was opened and
// returns; a thread of its own turns events into lines, appends them, and tells a listener (progress). For events that
// are plain numbers (StepEnded) the caller's thread allocates nothing and makes no system call, unless the ring is
// full: then it waits, so that nothing is lost.
//
// Lines reach the system at least every `write_every`, and by flush(): they survive a kill of the process. They are
// made safe against a power cut when the file is closed. A write that failed (disk full) is kept: flush() and failed()
// tell, and later events are dropped, because a hole in the file would be a lie.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "describe/spec/run.h"
#include "ground/store/store.h"

namespace systole {

struct EventFileOptions {
  std::size_t capacity = 256;  // events between the caller and the writer
  Seconds write_every = Seconds(0.2);
  std::function<void(const Event&)> listener;  // on the writer's thread, in order, after the event was taken
};

class EventFile final : public EventSink {
 public:
  // Appends to `path`, creating it; one of which no event came is taken away when it is closed: who was refused before
  // it began has no part in the run. The store is borrowed. Errors: io, no_space, not_found (no such folder).
  static Result<std::unique_ptr<EventFile>> open(Store& store, const std::string& path, EventFileOptions options = {});
  ~EventFile() override;  // as close(); a failure that nobody asked for is lost

  // Writes, syncs and closes: whether every event is safe on the disk. Events added later are dropped. A second call
  // gives the same answer.
  Status close();
  void add(const Event& event) override;
  Status flush() override;  // waits until everything added is written and told
  std::optional<Error> failed() const;

 private:
  class Writer;
  EventFile(std::unique_ptr<Writer> writer, Store& store, std::string path);
  std::unique_ptr<Writer> writer_;
  Store& store_;
  std::string path_;
};

}  // namespace systole
