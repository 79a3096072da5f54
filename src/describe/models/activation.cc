#include "describe/models/activation.h"

namespace systole {

Value activate(Activation activation, Value x) {
  switch (activation) {
    case Activation::gelu: return gelu(x);
    case Activation::gelu_tanh: return gelu_tanh(x);
    case Activation::relu: return relu(x);
    case Activation::relu2: {
      const Value positive = relu(x);
      return mul(positive, positive);
    }
    case Activation::silu: return silu(x);
    case Activation::tanh: return tanh(x);
    case Activation::sigmoid: return sigmoid(x);
  }
  fail(error(ErrorKind::internal, "activation {}", static_cast<int>(activation)));
}

}  // namespace systole
