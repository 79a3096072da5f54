#pragma once
// A thread that runs tasks in turn.

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace systole {

// Runs tasks in turn on a thread of its own; those that wait at its end are dropped. Of a task that throws, nothing is
// told: its responder goes, which answers 500.
class TaskThread {
 public:
  using Task = std::function<void()>;

  TaskThread() : thread_([tasks = tasks_] { tasks->run(); }) {}
  ~TaskThread() {
    tasks_->end();
    thread_.join();
  }
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  void post(Task task) { tasks_->post(std::move(task)); }
  // As post(), also for those that may outlive this: after its end a task is dropped.
  std::function<void(Task)> poster() const {
    return [tasks = tasks_](Task task) { tasks->post(std::move(task)); };
  }

 private:
  class Tasks {
   public:
    void post(Task task) {
      const std::lock_guard lock(mutex_);
      if (ends_) return;
      waiting_.push_back(std::move(task));
      changed_.notify_all();
    }
    void end() {
      std::deque<Task> dropped;
      const std::lock_guard lock(mutex_);
      ends_ = true;
      dropped.swap(waiting_);
      changed_.notify_all();
    }
    void run() {
      while (true) {
        Task task;
        {
          std::unique_lock lock(mutex_);
          changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
          if (ends_) return;
          task = std::move(waiting_.front());
          waiting_.pop_front();
        }
        try {
          task();
        } catch (const std::exception&) {}
      }
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Task> waiting_;  // guarded by mutex_, as the next
    bool ends_ = false;
  };

  std::shared_ptr<Tasks> tasks_ = std::make_shared<Tasks>();
  std::thread thread_;  // last: it uses the others
};

}  // namespace systole
