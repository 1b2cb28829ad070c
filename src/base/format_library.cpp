// The formatting library, compiled once: header-only it would be compiled into every file that
// formats a message, which took a third of the build.
#include <fmt/format-inl.h>

// What its headers declare and leave to one object file.
FMT_BEGIN_NAMESPACE
namespace detail {
template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl<char>(locale_ref) -> char;
template auto dragonbox::to_decimal<float>(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal<double>(double) noexcept -> dragonbox::decimal_fp<double>;
template void buffer<char>::append<char>(const char*, const char*);
}  // namespace detail
FMT_END_NAMESPACE
