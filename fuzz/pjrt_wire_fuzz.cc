// Bytes read as a protobuf message: to its end or to an error, within its bounds; what was read and is written again
// reads the same. The same bytes as a module after optimisation: one that was read can be counted.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "ground/pjrt/buffer_assignment.h"
#include "ground/pjrt/hlo_module.h"
#include "ground/pjrt/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace systole::pjrt;
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  WireWriter again;
  const systole::Result<HloModule> module = read_hlo({"hlo", std::string(message)});
  if (module.ok()) {
    for (const auto& [id, computation] : module->computations)
      for (const HloInstruction& instruction : computation.instructions) (void)instruction.shape.bytes();
  }
  (void)read_buffers(message);
  std::vector<WireField> fields;
  WireReader reader(message);
  for (;;) {
    const auto field = reader.next();
    if (!field.ok()) return 0;
    if (!*field) break;
    const WireField& f = **field;
    fields.push_back(f);
    (void)unpacked(f.content);
    switch (f.kind) {
      case WireKind::varint: again.integer(f.number, f.integer().value()); break;
      case WireKind::bytes: again.bytes(f.number, f.content); break;
      case WireKind::fixed32: again.f32(f.number, static_cast<float>(f.real().value())); break;
      case WireKind::fixed64: again.f64(f.number, f.real().value()); break;
    }
  }
  WireReader second(again.text());
  for (const WireField& f : fields) {
    const WireField g = *second.next().value();
    const bool same = f.number == g.number && f.kind == g.kind && f.content == g.content;
    // A signalling NaN may come back quiet: only the numbers' bits of the kinds that are no floats are held together.
    if (!same || (f.kind == WireKind::varint && f.bits != g.bits)) std::abort();
  }
  if (second.next().value()) std::abort();
  return 0;
}
