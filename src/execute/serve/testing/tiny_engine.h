#pragma once
// A tiny decoder with weights far from uniform, on the reference backend.

#include <limits>
#include <memory>

#include "describe/models/decoder/decoder.h"
#include "execute/backends/reference/reference.h"
#include "execute/runtime/initialize.h"
#include "execute/serve/engine.h"

namespace systole {

inline DecoderSpec tiny_decoder(std::int64_t vocabulary = 13, std::int64_t context = 12) {
  DecoderSpec spec;
  spec.layers = 2;
  spec.width = 8;
  spec.heads = 2;
  spec.mlp = 12;
  spec.vocabulary = vocabulary;
  spec.context = context;
  return spec;
}

// The value that engines of these tests give a parameter: far from uniform, attention not saturated.
inline HostTensor sharp_value(const Parameter& parameter, std::uint64_t seed = 3) {
  HostTensor tensor = initial_value(parameter, seed);
  const double factor = parameter.init.kind == Init::Kind::normal ? 20 : 1;
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, factor * tensor.at(i));
  return tensor;
}

inline void write_weights(const Model& model, Engine& engine, std::uint64_t seed) {
  for (const Parameter& p : model.parameters())
    engine.executor().write(engine.program().value_named(p.name), 0, sharp_value(p, seed).bytes()).value();
}

inline std::unique_ptr<Engine> sharp_engine(const Model& model, Device& device, const EngineOptions& options,
                                            std::uint64_t seed = 3) {
  std::unique_ptr<Engine> engine = std::move(Engine::create(model, device, options)).value();
  write_weights(model, *engine, seed);
  return engine;
}

// From now on its logits are not finite.
inline void spoil_weights(const Model& model, Engine& engine) {
  for (const Parameter& p : model.parameters()) {
    HostTensor value = sharp_value(p);
    for (std::int64_t i = 0; i < value.size(); ++i) value.set(i, std::numeric_limits<double>::quiet_NaN());
    engine.executor().write(engine.program().value_named(p.name), 0, value.bytes()).value();
  }
}

}  // namespace systole
