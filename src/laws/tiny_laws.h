#pragma once
// Laws on a TinyJob of any model and device.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <initializer_list>

#include "execute/runtime/testing/expect_planned_work.h"
#include "laws/tiny_job.h"

namespace systole::laws {

// Selects combinations of choices to try; each choice is given by its index in its list. With SYSTOLE_TEST_LONG all,
// otherwise one in `one_in`: where the sum of the indices is a multiple of it. So each choice is still tried, and with
// three or more lists each pair of choices occurs.
inline bool is_tried(std::initializer_list<std::size_t> choices, std::size_t one_in = 2) {
  std::size_t sum = 0;
  for (const std::size_t choice : choices) sum += choice;
  return std::getenv("SYSTOLE_TEST_LONG") != nullptr || sum % one_in == 0;
}

// Runs a schedule `times` times: each function counted its planned work, functions of other schedules nothing.
inline void expect_planned(TinyJob& job, const char* schedule, int times = 1) {
  const Schedule& s = job.program().schedule_named(schedule);
  std::vector<std::int64_t> calls(job.program().functions.size(), 0);
  for (const Action& action : s.actions) calls[static_cast<std::size_t>(action.function)] += times;
  const std::vector<WorkCounters> before = job.executor().counters();
  for (int i = 0; i < times; ++i) {
    if (std::string_view(schedule) == "train") {
      job.step();
    } else {
      job.executor().run(s).value();
    }
  }
  for (std::size_t f = 0; f < calls.size(); ++f) {
    const Function& function = job.program().functions[f];
    SCOPED_TRACE(function.name);
    expect_planned_work(function.work * calls[f], job.executor().counters()[f], before[f]);
  }
}

// Each tensor's gradients agree to `tolerance` of their norm.
inline void expect_same_gradients(TinyJob& fast, TinyJob& slow, double tolerance) {
  const auto a = fast.gradients(), b = slow.gradients();
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t p = 0; p < a.size(); ++p) {
    double norm = 0, error = 0;
    for (std::size_t i = 0; i < a[p].size(); ++i) {
      norm += b[p][i] * b[p][i];
      error += (a[p][i] - b[p][i]) * (a[p][i] - b[p][i]);
    }
    EXPECT_LE(std::sqrt(error), tolerance * (std::sqrt(norm) + 0.1)) << "tensor " << p;
  }
}

// Takes a step of each on the same batch: loss and gradients agree within rounding, eps of the compute type times the
// root of the longest sum.
inline void expect_same_step(TinyJob& fast, TinyJob& slow, const Batch& batch, const Strategy& strategy) {
  for (TinyJob* job : {&fast, &slow}) {
    job->begin();
    job->set_batch(batch);
    job->step();
  }
  const double tolerance = 32 * epsilon_of(strategy.precision.compute);
  EXPECT_NEAR(fast.loss(), slow.loss(), tolerance * std::abs(slow.loss()));
  expect_same_gradients(fast, slow, tolerance);
}

}  // namespace systole::laws
