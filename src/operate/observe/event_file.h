#pragma once
// The event file of one process. `add` copies the event into a ring, allocated when the file was opened, and returns. A
// writer thread formats events as lines, appends them, and calls a listener (progress). For purely numeric events
// (StepEnded) `add` allocates nothing and makes no system call, unless the ring is full: then it waits, so nothing is
// lost.
//
// Lines are written to the system at least every `write_every`, and by flush(): they survive a kill of the process.
// They become durable when the file is closed. After a failed write (disk full) flush() and failed() report the error,
// and later events are dropped, because a gap in the file would mislead.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "describe/spec/run.h"
#include "ground/store/store.h"

namespace systole {

struct EventFileOptions {
  std::size_t capacity = 256;  // size of the ring
  Seconds write_every = Seconds(0.2);
  std::function<void(const Event&)> listener;  // on the writer's thread, in order, after the event was taken
  // On the writer's thread, for the first failed write, unless a waiting flush() or close() reports it.
  std::function<void(const Error&)> on_failure;
};

class EventFile final : public EventSink {
 public:
  // Appends to `path`, creating it. A file without events is removed at close: a process refused before it began has no
  // part in the run. Borrows the store. Errors: io, no_space, not_found (no such folder).
  static Result<std::unique_ptr<EventFile>> open(Store& store, const std::string& path, EventFileOptions options = {});
  ~EventFile() override;  // as close(); an unreported failure is lost

  // Writes, syncs and closes; returns whether every event is durable. Events added later are dropped. A second call
  // returns the same result.
  Status close();
  void add(const Event& event) override;
  Status flush() override;  // waits until everything added is written and passed to the listener
  std::optional<Error> failed() const;

 private:
  class Writer;
  EventFile(std::unique_ptr<Writer> writer, Store& store, std::string path);
  std::unique_ptr<Writer> writer_;
  Store& store_;
  std::string path_;
};

}  // namespace systole
