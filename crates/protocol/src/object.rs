//! Reading of JSON objects as objects only. serde accepts a JSON array for a struct, member by member in field order: `[null,true]` would
//! be an answer that approves. Input from outside is read with [`from_str`], [`from_slice`], [`from_value`], or through [`Objects`],
//! which refuse an array in place of a struct at any depth.
//!
//! serde buffers tagged and untagged enums and `flatten` before [`Objects`] sees them: for an enum that stands for an object, use
//! [`only`] as `deserialize_with`.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use serde_json::Value;
use serde_json::value::RawValue;

/// Reads JSON as `T`.
///
/// # Errors
/// The text is not JSON, or does not match `T`; an array does not match a struct.
pub fn from_str<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, serde_json::Error> {
    let mut parser = serde_json::Deserializer::from_str(text);
    let value = T::deserialize(Objects(&mut parser))?;
    parser.end()?;
    Ok(value)
}

/// Reads JSON bytes as `T`.
///
/// # Errors
/// The errors of [`from_str`]; also bytes that are not UTF-8.
pub fn from_slice<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, serde_json::Error> {
    let mut parser = serde_json::Deserializer::from_slice(json);
    let value = T::deserialize(Objects(&mut parser))?;
    parser.end()?;
    Ok(value)
}

/// Reads a parsed value as `T`.
///
/// # Errors
/// The value does not match `T`; an array does not match a struct.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, serde_json::Error> {
    T::deserialize(Objects(value))
}

/// Reads an object, as `deserialize_with` of a field whose type is a tagged or untagged enum that stands for an object.
///
/// # Errors
/// The value is not an object, or does not match `T`.
pub fn only<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    if !raw.get().starts_with('{') {
        return Err(serde::de::Error::custom("invalid type: expected an object"));
    }
    from_str(raw.get()).map_err(serde::de::Error::custom)
}

/// Like [`only`], for an optional field; the field also needs `default`.
///
/// # Errors
/// The errors of [`only`]; `null` is `None`.
pub fn optional<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let raw = Option::<Box<RawValue>>::deserialize(deserializer)?;
    raw.map(|raw| only(&*raw).map_err(serde::de::Error::custom)).transpose()
}

/// A deserializer that refuses an array in place of a struct.
#[derive(Debug)]
pub struct Objects<D>(pub D);

/// The methods of a deserializer that only forward the visitor.
macro_rules! forward {
    ($($method:ident($($name:ident: $type:ty),*);)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($name,)* Objects(visitor))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    forward! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_map();
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }

    /// Requests a map, so that an array is refused.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Objects(visitor))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// The methods of a visitor that accept a plain value.
macro_rules! plain {
    ($($method:ident: $type:ty;)*) => {
        $(fn $method<E: serde::de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.0.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Objects<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    plain! {
        visit_bool: bool;
        visit_i8: i8;
        visit_i16: i16;
        visit_i32: i32;
        visit_i64: i64;
        visit_i128: i128;
        visit_u8: u8;
        visit_u16: u16;
        visit_u32: u32;
        visit_u64: u64;
        visit_u128: u128;
        visit_f32: f32;
        visit_f64: f64;
        visit_char: char;
        visit_str: &str;
        visit_borrowed_str: &'de str;
        visit_string: String;
        visit_bytes: &[u8];
        visit_borrowed_bytes: &'de [u8];
        visit_byte_buf: Vec<u8>;
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Objects(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Objects(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Objects(seq))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Objects(map))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, one: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Objects(one))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Objects<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Objects(deserializer))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Objects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Objects(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Objects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Objects<A> {
    type Error = A::Error;
    type Variant = Objects<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let (value, variant) = self.0.variant_seed(Objects(seed))?;
        Ok((value, Objects(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Objects(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, Objects(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.newtype_variant_seed(Members(Objects(visitor)))
    }
}

/// The fields of a struct variant.
struct Members<V>(V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Members<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        deserializer.deserialize_map(self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::collections::BTreeMap;

    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq, Serialize)]
    struct Point {
        x: u8,
        #[serde(default)]
        y: Option<bool>,
    }

    #[derive(Debug, Deserialize, PartialEq, Serialize)]
    #[serde(rename_all = "lowercase")]
    enum Shape {
        Nothing,
        Dot(Point),
        Pair(u8, u8),
        Box { from: Point, to: Point },
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(tag = "type", rename_all = "lowercase")]
    enum Tagged {
        Text { text: String },
    }

    #[derive(Debug, Deserialize)]
    struct Whole<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(borrow, default)]
        raw: Option<&'a RawValue>,
        #[serde(default)]
        points: Vec<Point>,
        #[serde(default)]
        by_name: BTreeMap<String, Option<Point>>,
        #[serde(default)]
        shapes: Vec<Shape>,
        #[serde(default, deserialize_with = "optional")]
        tagged: Option<Tagged>,
        #[serde(default)]
        pair: (u8, u8),
        #[serde(default)]
        any: Value,
    }

    #[test]
    fn object_reads_what_serde_reads() {
        let text = r#"{"name":"a\n","raw":[1,{"b":2}],"points":[{"x":1,"y":true},{"x":2}],"by_name":{"p":{"x":3},"q":null},
            "shapes":["nothing",{"dot":{"x":1}},{"pair":[1,2]},{"box":{"from":{"x":1},"to":{"x":2}}}],
            "tagged":{"type":"text","text":"t"},"pair":[1,2],"any":[[1],{"c":[]}],"more":[1]}"#;
        let whole: Whole<'_> = from_str(text).unwrap();
        assert_eq!((&*whole.name, whole.raw.unwrap().get()), ("a\n", r#"[1,{"b":2}]"#));
        assert_eq!(whole.points, [Point { x: 1, y: Some(true) }, Point { x: 2, y: None }]);
        assert_eq!((whole.by_name.len(), whole.by_name["q"].is_none(), whole.pair), (2, true, (1, 2)));
        assert_eq!((whole.shapes.len(), &whole.shapes[0]), (4, &Shape::Nothing));
        assert_eq!((whole.tagged, whole.any), (Some(Tagged::Text { text: "t".into() }), json!([[1], { "c": [] }])));
        assert_eq!(from_value::<Point>(json!({ "x": 7 })).unwrap().x, 7);
        assert!(from_str::<Whole<'_>>(r#"{"name":"a","tagged":null}"#).unwrap().tagged.is_none());
    }

    #[test]
    fn object_refuses_an_array_at_any_depth() {
        // serde alone accepts it.
        assert!(serde_json::from_str::<Point>("[1,true]").is_ok());
        for bad in ["[1,true]", "[]", "null", "1", "{\"x\":1} 2"] {
            assert!(from_str::<Point>(bad).is_err(), "{bad}");
            assert!(from_slice::<Point>(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(from_value::<Point>(json!([1, true])).is_err());
        for inner in [
            r#""points":[[1,true]]"#,
            r#""by_name":{"p":[1,true]}"#,
            r#""shapes":[{"dot":[1,true]}]"#,
            r#""shapes":[{"box":[{"x":1},{"x":2}]}]"#,
            r#""shapes":[{"box":{"from":[1],"to":{"x":2}}}]"#,
            r#""tagged":["text","t"]"#,
            r#""tagged":["text",{"text":"t"}]"#,
        ] {
            let text = format!("{{\"name\":\"a\",{inner}}}");
            assert!(from_str::<Whole<'_>>(&text).is_err(), "{inner}");
        }
        let mut parser = serde_json::Deserializer::from_str("{\"points\":[[1]]}");
        let error = serde_path_to_error::deserialize::<_, Whole<'_>>(Objects(&mut parser)).unwrap_err();
        assert_eq!(error.path().to_string(), "points[0]", "the place is still told");
    }

    proptest::proptest! {
        /// Both deserializers read our own output alike.
        #[test]
        fn object_reads_what_serde_writes(x in 0u8.., y: Option<bool>, pair: (u8, u8)) {
            let shapes = vec![
                Shape::Dot(Point { x, y }),
                Shape::Pair(pair.0, pair.1),
                Shape::Box { from: Point { x, y: None }, to: Point { x: pair.1, y } },
            ];
            let text = serde_json::to_string(&shapes).unwrap();
            proptest::prop_assert_eq!(from_str::<Vec<Shape>>(&text).unwrap(), shapes);
        }
    }
}
