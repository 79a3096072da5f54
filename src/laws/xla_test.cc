// sharded-is-unsharded for XLA's text: whole training steps lowered, compiled and run by XLA on CPU devices, unsharded
// and over every axis, equal the reference in f64 to 1e-12, function by function and as one module.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "describe/partition/fused_step.h"
#include "describe/stablehlo/testing/xla.h"
#include "execute/backends/reference/reference.h"
#include "laws/tiny_laws.h"
#include "laws/tiny_mesh.h"

namespace systole::laws {
namespace {

using pjrt::plugin;  // the plugin of NEEDS
using pjrt::Plugin;
using stablehlo::Compiled;
using stablehlo::DeviceValues;
using stablehlo::Module;

// Otherwise one mesh, as one module: XLA takes seconds to compile.
bool all_meshes() { return std::getenv("SYSTOLE_TEST_LONG") != nullptr; }

// Each device's shard of each value and slot.
class XlaMesh {
 public:
  XlaMesh(const Plugin& xla, const Program& program) : xla_(xla), program_(program) {
    values_.resize(static_cast<std::size_t>(program.mesh.num_devices()));
  }

  // Takes parameters, state and inputs from the job.
  void take(TinyMesh& mesh) {
    for (std::size_t device = 0; device < values_.size(); ++device) {
      for (std::size_t v = 0; v < program_.values.size(); ++v) {
        const ProgramValue& value = program_.values[v];
        if (value.name.starts_with("evaluate/")) continue;
        const bool given = value.residence == Residence::parameter || value.residence == Residence::state ||
                           value.residence == Residence::input;
        for (int slot = 0; given && slot < value.slots; ++slot)
          values_[device].insert_or_assign({static_cast<int>(v), slot}, mesh.job(device).tensor(value.name, slot));
      }
    }
  }

  void run(const char* schedule) {
    for (const Action& action : program_.schedule_named(schedule).actions) {
      auto compiled = compiled_.find(action.function);
      if (compiled == compiled_.end()) {
        const Module module = stablehlo::lower(program_, program_.functions[static_cast<std::size_t>(action.function)]);
        compiled = compiled_.emplace(action.function, Both{module, Compiled(xla_, module)}).first;
      }
      play(compiled->second.module, compiled->second.program, action);
    }
  }

  // For the schedule's only function: bytes of outputs in arguments' buffers.
  Bytes aliased() const { return compiled_.at(0).program.memory().aliased; }

  const HostTensor& at(std::size_t device, const std::string& value, int slot = 0) const {
    return values_[device].at({program_.value_named(value), slot});
  }

 private:
  struct Both {
    Module module;
    Compiled program;
  };

  void play(const Module& module, const Compiled& compiled, const Action& action) {
    const auto place = [&](const stablehlo::ModulePort& port) {
      return std::pair(port.port->value, slot_of(program_, *port.port, action));
    };
    DeviceValues arguments(values_.size());
    for (std::size_t d = 0; d < values_.size(); ++d) {
      for (const stablehlo::ModulePort& port : module.arguments) arguments[d].push_back(values_[d].at(place(port)));
    }
    const DeviceValues results = compiled.run(arguments);
    for (std::size_t d = 0; d < values_.size(); ++d) {
      for (std::size_t i = 0; i < module.results.size(); ++i)
        values_[d].insert_or_assign(place(module.results[i]), results[d][i]);
    }
  }

  const Plugin& xla_;
  const Program& program_;
  std::vector<std::map<std::pair<int, int>, HostTensor>> values_;
  std::map<int, Both> compiled_;
};

struct Case {
  bool llama = false;  // else a gpt
  const char* mesh = "";
  ShardingStrategy::Stored stored = ShardingStrategy::Stored::parameters;
  int microbatches = 1;
  UpdateRule::Kind optimizer = UpdateRule::Kind::sgd;
  ContextKeys context_keys = ContextKeys::all_gather;
};

// A key's bias has a gradient that is zero except for rounding (sharded_is_unsharded_test.cc).
double tolerance(const Case& c, const ProgramValue& value) {
  return c.optimizer == UpdateRule::Kind::adamw && value.residence == Residence::parameter ? 1e-10 : 1e-12;
}

void expect_same(const XlaMesh& xla, TinyMesh& mesh, const Case& c) {
  for (std::size_t d = 0; d < mesh.size(); ++d) {
    for (const ProgramValue& value : mesh.program().values) {
      const bool kept = value.residence == Residence::parameter || value.residence == Residence::state ||
                        value.residence == Residence::output;
      if (!kept || value.name.starts_with("evaluate/")) continue;
      for (int slot = 0; slot < value.slots; ++slot)
        EXPECT_LE(relative_difference(xla.at(d, value.name, slot), mesh.job(d).tensor(value.name, slot)),
                  tolerance(c, value))
            << value.name << " of device " << d;
    }
  }
}

Bytes kept_bytes(const Program& program) {
  Bytes sum;
  for (const ProgramValue& value : program.values) {
    if (value.residence == Residence::parameter || value.residence == Residence::state) sum += value.type.bytes();
  }
  return sum;
}

void expect_xla_is_reference(const Plugin& xla, const Model& model, const Batch& batch, std::int64_t rows,
                             const Case& c) {
  SCOPED_TRACE(fmt::format("{} on '{}', {} stored in parts, {} microbatches", model.family(), c.mesh, name_of(c.stored),
                           c.microbatches));
  Strategy strategy = exact_strategy();
  strategy.microbatches = c.microbatches;
  strategy.sharding.stored = c.stored;
  strategy.sharding.context_keys = c.context_keys;
  strategy.optimizer.kind = c.optimizer;
  strategy.optimizer.sgd.momentum = 0.9;
  TinyMesh mesh(model, rows, strategy, Mesh::parse(c.mesh).value(), true,
                [](std::int64_t) { return make_reference_device(); });
  mesh.begin(batch);
  double labels = 0;
  for (const double label : batch.at("labels").values()) labels += label >= 0 ? 1 : 0;
  for (std::size_t d = 0; d < mesh.size(); ++d) {  // in the order of step()
    mesh.job(d).put("rate", {1e-2});
    mesh.job(d).put("label_count", {labels});
  }
  const Program one = fused_step(mesh.program());
  XlaMesh by_function(xla, mesh.program()), as_one(xla, one);
  by_function.take(mesh);
  as_one.take(mesh);
  mesh.step();
  if (all_meshes()) {
    by_function.run("train");
    expect_same(by_function, mesh, c);
  }
  as_one.run("train");
  expect_same(as_one, mesh, c);
  EXPECT_EQ(as_one.aliased(), kept_bytes(one)) << "all state stays where it is";
}

std::vector<Case> all_cases() {
  using Stored = ShardingStrategy::Stored;
  std::vector<Case> cases{{false, "data=2 model=2", Stored::parameters, 2}};
  if (!all_meshes()) return cases;
  for (const Case& c : {Case{false, ""},
                        {false, "", Stored::parameters, 4},
                        {false, "data=2 model=2"},
                        {false, "data=2"},
                        {false, "fsdp=2"},
                        {false, "model=2"},
                        {false, "data=3", Stored::parameters, 2},
                        {false, "fsdp=4", Stored::gradients},
                        {false, "fsdp=3", Stored::state},
                        {false, "model=3", Stored::parameters, 2},
                        {false, "data=2 fsdp=3"},
                        {false, "fsdp=2 model=3"},
                        {false, "data=2 fsdp=2 model=2", Stored::state, 1, UpdateRule::Kind::adamw},
                        {true, ""},
                        {true, "data=2"},
                        {true, "model=2"},
                        {true, "fsdp=6"},
                        {true, "fsdp=2 model=2"},
                        {true, "context=3"},
                        {false, "data=2 context=3", Stored::parameters, 2},
                        {true, "context=3", Stored::parameters, 3, UpdateRule::Kind::sgd, ContextKeys::ring},
                        {true, "data=2 fsdp=2 model=2"}})
    cases.push_back(c);
  return cases;
}

class XlaIsReference : public testing::TestWithParam<Case> {};

TEST_P(XlaIsReference, OfDecoders) {
  NEEDS("cpu");
  DecoderSpec config = divisible(GetParam().llama ? tiny_llama() : tiny_gpt());
  const auto model = make_decoder(config);
  expect_xla_is_reference(*it, *model, language_batch(12, 12, 9), 12, GetParam());
}

INSTANTIATE_TEST_SUITE_P(On, XlaIsReference, testing::ValuesIn(all_cases()), [](const auto& each) {
  std::string name = fmt::format("{}_{}_{}", each.param.llama ? "llama" : "gpt",
                                 each.param.mesh[0] == '\0' ? "one device" : each.param.mesh, each.param.microbatches);
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

}  // namespace
}  // namespace systole::laws
