// The object that carries the precompiled header (pch.h).
